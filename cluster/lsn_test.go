package cluster_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestParseLSN(t *testing.T) {
	good := map[string]cluster.LSN{
		"0/0":               0,
		"0/3000060":         0x3000060,
		"0/03000060":        0x3000060, // as PostgreSQL 19 prints it
		"1/0":               1 << 32,
		"FFFFFFFF/FFFFFFFF": 1<<64 - 1,
		"ab/cd":             0xab<<32 | 0xcd,
	}
	for text, want := range good {
		if got, err := cluster.ParseLSN(text); err != nil || got != want {
			t.Errorf("ParseLSN(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	bad := []string{"", "/", "0", "0/", "/0", " 0/0", "0/0 ", "0x1/0", "-1/0", "+1/0", "0/0/0", "0/123456789", "123456789/0", "g/0", "0/1_0", "0/\u0661"}
	for _, text := range bad {
		if got, err := cluster.ParseLSN(text); err == nil {
			t.Errorf("ParseLSN(%q) = %s, want an error", text, got)
		}
	}
}

func TestLSNTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := cluster.LSN(rapid.Uint64().Draw(t, "lsn"))
		for _, text := range []string{l.String(), fmt.Sprintf("%X/%08X", uint32(l>>32), uint32(l))} {
			if back, err := cluster.ParseLSN(text); err != nil || back != l {
				t.Fatalf("%q came back as %s, %v", text, back, err)
			}
		}
	})
}

func TestJSON(t *testing.T) {
	type doc struct {
		At     cluster.LSN              `json:"at"`
		Absent cluster.Opt[cluster.LSN] `json:"absent"`
		There  cluster.Opt[cluster.LSN] `json:"there"`
		System cluster.SystemID         `json:"system"`
	}
	in := doc{At: 0x3000060, There: cluster.Some(cluster.LSN(1 << 32)), System: 1<<64 - 1}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"at":"0/3000060","absent":null,"there":"1/0","system":"18446744073709551615"}`; string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	var out doc
	if err := json.Unmarshal(text, &out); err != nil || out != in {
		t.Errorf("came back as %+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"at":"rubbish"}`), &out); err == nil {
		t.Error("a rubbish LSN was read without an error")
	}
}

func TestParseSystemID(t *testing.T) {
	for _, bad := range []string{"", "-1", "1.5", "18446744073709551616", "0x1"} {
		if _, err := cluster.ParseSystemID(bad); err == nil {
			t.Errorf("ParseSystemID(%q) gave no error", bad)
		}
	}
}
