package lab

import (
	"strings"
	"testing"
)

func TestNotSafe(t *testing.T) {
	document, err := readDocument([]byte(`{"primary": {"node": "a"},
		"members": [{"node": "a", "error": "dead"}, {"node": "b"}, {"node": "c"}, {"node": "d", "error": "gone"}],
		"slots": [{"name": "s", "standbys": [{"node": "b", "verdict": "SAFE"}, {"node": "c", "verdict": "PENDING"}, {"node": "d", "verdict": "SAFE"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		slots, standbys []string
		want            string
	}{
		"safe":                {[]string{"s"}, []string{"b"}, ""},
		"pending":             {[]string{"s"}, []string{"b", "c"}, `slot "s" on standby "c" is PENDING`},
		"an old verdict":      {[]string{"s"}, []string{"d"}, "did not answer the controller: gone"},
		"a slot not shown":    {[]string{"s", "t"}, []string{"b"}, `slot "t" on standby "b" is absent`},
		"a standby not shown": {[]string{"s"}, []string{"e"}, `slot "s" on standby "e" is absent`},
	} {
		got := document.notSafe(c.slots, c.standbys)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	document.Primary = nil
	if document.notSafe([]string{"s"}, []string{"b"}) == "" {
		t.Error("without a primary all is safe")
	}
}
