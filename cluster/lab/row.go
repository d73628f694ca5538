package lab

import (
	"fmt"
	"strconv"
	"strings"
)

// RowID names one row of the load: its writer, the writer's transaction and the
// row's place in it. No two rows have the same, on any node, in any round.
type RowID struct {
	Writer int32
	Tx     int64
	Part   int32
}

func (id RowID) String() string { return fmt.Sprintf("%d.%d.%d", id.Writer, id.Tx, id.Part) }

// ParseRowID reads the form of String.
func ParseRowID(s string) (RowID, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return RowID{}, fmt.Errorf("parsing row id %q: want writer.transaction.part", s)
	}
	writer, errW := strconv.ParseInt(parts[0], 10, 32)
	tx, errT := strconv.ParseInt(parts[1], 10, 64)
	part, errP := strconv.ParseInt(parts[2], 10, 32)
	if errW != nil || errT != nil || errP != nil {
		return RowID{}, fmt.Errorf("parsing row id %q: want three decimal numbers", s)
	}
	return RowID{Writer: int32(writer), Tx: tx, Part: int32(part)}, nil
}

// txID names one transaction of the load.
type txID struct {
	writer int32
	tx     int64
}

func (id RowID) transaction() txID { return txID{id.Writer, id.Tx} }

func (t txID) String() string { return fmt.Sprintf("%d.%d", t.writer, t.tx) }

// body is what a row says of itself, so that a row decoded with a wrong
// catalog or put together from two cannot pass for the right one. column names
// a column that must have come along, holding the transaction's number.
func body(id RowID, column string) string {
	filler := strings.Repeat(string(rune('a'+id.Tx%26)), int(id.Tx%50))
	return strings.TrimSpace(id.String() + " " + column + " " + filler)
}

// checkRow compares a decoded row with what it says of itself.
func checkRow(id RowID, values map[string]string) error {
	text, ok := values["body"]
	if !ok {
		return fmt.Errorf("row %s came without its column body", id)
	}
	words := strings.Fields(text)
	column := ""
	if len(words) > 1 && strings.HasPrefix(words[1], "v_") {
		column = words[1]
	}
	if want := body(id, column); text != want {
		return fmt.Errorf("row %s came with the body %q, want %q", id, text, want)
	}
	if column == "" {
		return nil
	}
	if got, want := values[column], strconv.FormatInt(id.Tx, 10); got != want {
		return fmt.Errorf("row %s came with %q in column %s, want %q", id, got, column, want)
	}
	return nil
}
