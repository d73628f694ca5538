package output

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"
)

var result = Result{
	Document: struct {
		Name string  `json:"name"`
		Size *int    `json:"size"`
		List []int   `json:"list"`
		Rate float64 `json:"rate"`
	}{Name: "yes", List: []int{}, Rate: 0.5},
	Header:  []string{"name", "verdict", "hint"},
	Rows:    [][]string{{"a\tb\\", "SAFE", ""}, {"\x1b[31m", "LOST", "h"}},
	Notes:   []string{"two slots"},
	TSVOnly: 1,
}

func TestFormats(t *testing.T) {
	for f, want := range map[Format]string{
		JSON:  "{\n  \"name\": \"yes\",\n  \"size\": null,\n  \"list\": [],\n  \"rate\": 0.5\n}\n",
		YAML:  "name: \"yes\"\nsize: null\nlist: []\nrate: 0.5\n",
		TSV:   "name\tverdict\thint\na\\tb\\\\\tSAFE\t\n\x1b[31m\tLOST\th\n",
		Table: "NAME      VERDICT\na\\tb\\\\    SAFE\n\\x1b[31m  LOST\ntwo slots\n",
	} {
		t.Run(string(f), func(t *testing.T) {
			var b bytes.Buffer
			if err := Write(&b, f, result); err != nil {
				t.Fatal(err)
			}
			if b.String() != want {
				t.Errorf("got  %q\nwant %q", b.String(), want)
			}
		})
	}
}

func TestUnknownFormat(t *testing.T) {
	f := Table
	if err := f.Set("xml"); err == nil || f != Table {
		t.Errorf("xml was taken: %v %s", err, f)
	}
	if err := f.Set("tsv"); err != nil || f != TSV {
		t.Errorf("tsv was not taken: %v %s", err, f)
	}
}

func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{
		"My \"DB\" база é": "My \"DB\" база é",
		"a\x1b[31m\n":      `a\x1b[31m\n`,
		"a\u202eb":         `a\u202eb`,
		"\u009b31m":        `\u009b31m`,
		"bad\xff":          `bad\xff`,
	} {
		if got := Printable(s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What a round complains of follows its result, as each is written at once.
func TestWatchRepeatsUntilTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	var b bytes.Buffer
	err := Watch(ctx, &b, &b, time.Millisecond, func(_ context.Context, stdout, stderr io.Writer) error {
		if calls++; calls == 3 {
			cancel()
		}
		_, _ = io.WriteString(stderr, "e")
		_, err := io.WriteString(stdout, "x")
		return err
	})
	if err != nil || calls != 3 || b.String() != "xexe" {
		t.Errorf("got %v, %d calls, %q", err, calls, b.String())
	}
}

func TestWatchedTerminalStaysColoured(t *testing.T) {
	b := screen{terminal: true}
	if err := Write(&b, Table, result); err != nil || !bytes.Contains(b.Bytes(), []byte("\x1b[32mSAFE")) {
		t.Errorf("%v: %q", err, b.String())
	}
}
