package lab

import (
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// messagePrefix marks the load's own logical messages.
const messagePrefix = "lab"

// decoder puts the messages of one stream together to transactions. Each
// transaction of the load has rows of one writer and one number, and each row
// says what it must look like; what contradicts is noted as a problem.
type decoder struct {
	deliveries *Deliveries
	stream     int
	node       string
	relations  map[uint32]*pglogrepl.RelationMessage
	open       bool
	current    Delivery
}

// decode gives the end of a transaction that is now complete, else 0.
func (d *decoder) decode(data []byte) (cluster.LSN, error) {
	message, err := pglogrepl.Parse(data)
	if err != nil {
		return 0, fmt.Errorf("parsing a message of pgoutput: %w", err)
	}
	switch m := message.(type) {
	case *pglogrepl.BeginMessage:
		d.open = true
		d.current = Delivery{Stream: d.stream, Node: d.node}
	case *pglogrepl.RelationMessage:
		if d.relations == nil {
			d.relations = map[uint32]*pglogrepl.RelationMessage{}
		}
		d.relations[m.RelationID] = m
	case *pglogrepl.InsertMessage:
		return 0, d.insert(m)
	case *pglogrepl.LogicalDecodingMessage:
		if m.Prefix == messagePrefix {
			d.deliveries.message(string(m.Content))
		}
	case *pglogrepl.CommitMessage:
		d.open = false
		d.current.Commit, d.current.End = cluster.LSN(m.CommitLSN), cluster.LSN(m.TransactionEndLSN)
		d.current.At = time.Now()
		d.deliveries.add(d.current)
		return d.current.End, nil
	}
	return 0, nil
}

func (d *decoder) insert(m *pglogrepl.InsertMessage) error {
	relation, ok := d.relations[m.RelationID]
	if !ok {
		return fmt.Errorf("a row of table %d came before the table's description", m.RelationID)
	}
	if !d.open {
		return fmt.Errorf("a row of table %q came outside a transaction", relation.RelationName)
	}
	values := map[string]string{}
	for i, column := range m.Tuple.Columns {
		if i < len(relation.Columns) && column.DataType == pglogrepl.TupleDataTypeText {
			values[relation.Columns[i].Name] = string(column.Data)
		}
	}
	id, err := rowID(values)
	if err != nil {
		return fmt.Errorf("reading a row of table %q: %w", relation.RelationName, err)
	}
	if err := checkRow(id, values); err != nil {
		d.deliveries.problem(err.Error())
	}
	if len(d.current.Parts) == 0 {
		d.current.Writer, d.current.Tx = id.Writer, id.Tx
	} else if d.current.id() != id.transaction() {
		d.deliveries.problem(fmt.Sprintf("row %s came in a transaction with rows of %s", id, d.current.id()))
	}
	d.current.Parts = append(d.current.Parts, id.Part)
	return nil
}

func rowID(values map[string]string) (RowID, error) {
	writer, errW := strconv.ParseInt(values["writer"], 10, 32)
	tx, errT := strconv.ParseInt(values["tx"], 10, 64)
	part, errP := strconv.ParseInt(values["part"], 10, 32)
	if errW != nil || errT != nil || errP != nil {
		return RowID{}, fmt.Errorf("no row id in %v", values)
	}
	return RowID{Writer: int32(writer), Tx: tx, Part: int32(part)}, nil
}
