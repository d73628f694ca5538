package output

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/mattn/go-isatty"
	"go.yaml.in/yaml/v4"
)

// Format is how a result is written. It is a flag's value: an unknown word is
// an error of usage.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
	TSV   Format = "tsv"
)

var formats = []Format{Table, JSON, YAML, TSV}

// Names lists what Set takes.
func Names() []string {
	var names []string
	for _, f := range formats {
		names = append(names, string(f))
	}
	return names
}

func (f *Format) String() string { return string(*f) }

// Type is the word that help shows for the flag's value.
func (f *Format) Type() string { return "table|json|yaml|tsv" }

// Set reads the flag's text.
func (f *Format) Set(s string) error {
	if !slices.Contains(formats, Format(s)) {
		return fmt.Errorf("%q is no format: write table, json, yaml or tsv", s)
	}
	*f = Format(s)
	return nil
}

// Result is what a command has to say: Document for programs, Header and Rows
// for tables and TSV, Notes as lines under a table.
type Result struct {
	Document any
	Header   []string
	Rows     [][]string
	Notes    []string
	// TSVOnly is how many of the last columns a table leaves out, because its
	// notes say the same in a form for people.
	TSVOnly int
}

// Write writes r to w.
func Write(w io.Writer, f Format, r Result) error {
	var b []byte
	var err error
	switch f {
	case JSON:
		if b, err = json.MarshalIndent(r.Document, "", "  "); err == nil {
			b = append(b, '\n')
		}
	case YAML:
		b, err = toYAML(r.Document)
	case TSV:
		b = toTSV(r)
	default:
		b = toTable(r, IsTerminal(w))
	}
	if err != nil {
		return fmt.Errorf("writing the result as %s: %w", f, err)
	}
	if _, err = w.Write(b); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// IsTerminal reports whether w is a terminal that may be coloured.
func IsTerminal(w io.Writer) bool {
	if b, ok := w.(*screen); ok {
		return b.terminal
	}
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd())
}

// toYAML goes by way of JSON, so that both have the same names and the same
// order, and absent values are null in both.
func toYAML(document any) ([]byte, error) {
	b, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := yaml.Load(b, &n); err != nil {
		return nil, err
	}
	blockStyle(&n)
	return yaml.Dump(&n)
}

// words that YAML 1.1 readers take for booleans stay in quotes.
var words = []string{"y", "n", "yes", "no", "on", "off"}

func blockStyle(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(words, strings.ToLower(n.Value)) {
		n.Style = 0
	}
	for _, c := range n.Content {
		blockStyle(c)
	}
}

// toTSV keeps one row on one line, whatever the cells hold, as PostgreSQL's COPY
// does: \t, \n, \r and \\ stand for what would break it.
func toTSV(r Result) []byte {
	escape := strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
	var b strings.Builder
	for _, row := range append([][]string{r.Header}, r.Rows...) {
		for i, cell := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(escape.Replace(cell))
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

func toTable(r Result, colour bool) []byte {
	var b strings.Builder
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.AppendHeader(tableRow(r.forPeople(r.Header), false))
	for _, row := range r.Rows {
		t.AppendRow(tableRow(r.forPeople(row), colour))
	}
	if len(r.Header) > 0 {
		b.WriteString(trimLines(t.Render()))
		b.WriteByte('\n')
	}
	for _, note := range r.Notes {
		b.WriteString(Printable(note))
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// plainStyle is columns with two blanks between them and no lines: easy to read,
// to grep and to paste.
func plainStyle() table.Style {
	s := table.StyleDefault
	s.Options = table.OptionsNoBordersAndSeparators
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	s.Format.Header = text.FormatUpper
	return s
}

func (r Result) forPeople(row []string) []string {
	return row[:max(0, len(row)-r.TSVOnly)]
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func tableRow(cells []string, colour bool) table.Row {
	row := make(table.Row, 0, len(cells))
	for _, cell := range cells {
		cell = Printable(cell)
		if colour {
			cell = paint(cell)
		}
		row = append(row, cell)
	}
	return row
}

// paint colours the words that a reader looks for first.
func paint(cell string) string {
	switch cell {
	case "SAFE", "yes":
		return text.FgGreen.Sprint(cell)
	case "PENDING", "warning":
		return text.FgYellow.Sprint(cell)
	case "UNSAFE", "LOST", "critical", "no":
		return text.FgRed.Sprint(cell)
	case "UNKNOWN":
		return text.FgMagenta.Sprint(cell)
	}
	return cell
}

// Printable shows what a terminal would obey, or would not show, as escapes
// instead of sending it there: a database's name may hold anything.
func Printable(s string) string {
	strange := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, strange) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
