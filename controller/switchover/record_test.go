package switchover

import (
	"strings"
	"testing"
)

func TestRecordIsBounded(t *testing.T) {
	r := Record{ID: "x", Leader: "a", Candidate: "b", Timeline: 1, SystemID: 7713668327877886530}
	for range 2000 {
		r.Slots = append(r.Slots, Before{Name: strings.Repeat("s", 63), Database: strings.Repeat("d", 63)})
	}
	text, err := r.Encode()
	if err != nil || len(text) > maxRecord || len(text) < maxRecord/2 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	back, err := ParseRecord(text)
	if err != nil || len(back.Slots)+back.More != 2000 || len(r.Slots) != 2000 || back.SystemID != r.SystemID {
		t.Errorf("%d and %d more, %v", len(back.Slots), back.More, err)
	}
	if names := Expected(back, safeStatus("a", 1)); len(names) != 2 {
		t.Errorf("%v", names)
	}
	for _, bad := range []string{"", "{}", `{"version":2,"id":"x","leader":"a","candidate":"b","timeline":1}`, "rubbish"} {
		if _, err := ParseRecord([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
