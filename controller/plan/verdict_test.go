package plan

import (
	"testing"
	"time"
)

// A verdict dates from when it became what it is; its sentence may change meanwhile.
func TestSince(t *testing.T) {
	then, now := epochZero, epochZero.Add(time.Hour)
	before := Verdict{State: Pending, Reason: ReasonNew, Message: "one", Since: then}
	for name, tc := range map[string]struct {
		v    Verdict
		want time.Time
	}{
		"the same":       {Verdict{State: Pending, Reason: ReasonNew, Message: "two"}, then},
		"another reason": {Verdict{State: Pending, Reason: ReasonBusy}, now},
		"another state":  {Verdict{State: Safe}, now},
	} {
		if got := since(now, tc.v, before); !got.Equal(tc.want) {
			t.Errorf("%s: since %s", name, got)
		}
	}
	if got := since(now, Verdict{}, Verdict{}); !got.Equal(now) {
		t.Errorf("the first: since %s", got)
	}
}
