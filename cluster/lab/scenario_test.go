package lab

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestSeedDecides(t *testing.T) {
	one, again, other := Scenario{Seed: 7}.choices(), Scenario{Seed: 7}.choices(), Scenario{Seed: 8}.choices()
	if one != again {
		t.Errorf("the same seed chooses %+v and %+v", one, again)
	}
	if one == other {
		t.Errorf("another seed chooses the same: %+v", one)
	}
}

func TestReport(t *testing.T) {
	good := Account{Slot: BusySlot, Committed: 3, Delivered: 3, Duplicated: 1}
	for name, c := range map[string]struct {
		report Report
		ok     bool
		says   string // in its lost rows or problems
	}{
		"all well":          {Report{Mirrored: true, Accounts: []Account{good}}, true, ""},
		"not mirrored":      {Report{Accounts: []Account{good}}, false, ""},
		"an error":          {Report{Mirrored: true, Errors: []string{"it broke"}}, false, "it broke"},
		"a row lost":        {Report{Mirrored: true, Accounts: []Account{{Slot: IdleSlot, Lost: []RowID{{1, 2, 3}}}}}, false, "slot audit lost 1.2.3"},
		"many rows lost":    {Report{Mirrored: true, Accounts: []Account{{Slot: IdleSlot, Lost: make([]RowID, 25)}}}, false, "and 5 more"},
		"a message lost":    {Report{Mirrored: true, Accounts: []Account{{Slot: BusySlot, LostNotes: []string{"9.1"}}}}, false, "slot orders lost message 9.1"},
		"wrongly delivered": {Report{Mirrored: true, Accounts: []Account{{Slot: BusySlot, Problems: []string{"half of 1.2"}}}}, false, "slot orders: half of 1.2"},
	} {
		if c.report.OK() != c.ok {
			t.Errorf("%s: OK is %v", name, c.report.OK())
		}
		all := strings.Join(append(c.report.LostRows(), c.report.Problems()...), "\n")
		if !strings.Contains(all, c.says) {
			t.Errorf("%s: it says %q, want %q", name, all, c.says)
		}
	}
}

// A controller that cannot run is named with its last words, not waited for.
func TestFailoverWithoutController(t *testing.T) {
	ctx, c := newLab(t)
	d := must(c.StartDaemon(DaemonOptions{Binary: "/bin/false"}))(t)
	if _, err := d.WaitSafe(ctx, []string{"s"}, []string{"b"}, nil); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a dead controller gives %v", err)
	}
	if err := d.Stop(ctx); err == nil {
		t.Error("stopping a controller that failed is no error")
	}
}
