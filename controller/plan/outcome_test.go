package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestPassing(t *testing.T) {
	for code, want := range map[cluster.Code]bool{
		cluster.CodeRetry: true, cluster.CodeBusyFence: true, cluster.CodeNotPinned: true,
		cluster.CodeBadSnapshot: false, cluster.CodeWALMissing: false, cluster.CodeNoFreeSlot: false, cluster.CodeMoved: false,
	} {
		if got := passing(code); got != want {
			t.Errorf("%s: %t", code, got)
		}
	}
}

// What is gone from under a mirror withdraws it only where that is what it stands on.
func TestWithdraws(t *testing.T) {
	at := func(restart cluster.LSN) cluster.Position { return cluster.Position{Restart: restart} }
	for _, c := range []struct {
		code   cluster.Code
		change cluster.Position
		mirror cluster.Opt[cluster.Position]
		want   bool
	}{
		{cluster.CodeWALMissing, at(7), cluster.Some(at(7)), true},
		{cluster.CodeBadSnapshot, at(7), cluster.Some(at(7)), true},
		{cluster.CodeWALMissing, at(7), cluster.Some(at(6)), false},
		{cluster.CodeBadSnapshot, at(7), cluster.Some(at(6)), false},
		{cluster.CodeWALMissing, at(0), cluster.None[cluster.Position](), false},
		{cluster.CodeFenced, at(7), cluster.Some(at(6)), true},
		{cluster.CodeOldSession, at(7), cluster.Some(at(7)), false},
		{cluster.CodeNoConsistentPoint, at(7), cluster.Some(at(7)), false},
	} {
		if got := withdraws(c.code, cluster.Change{Position: c.change}, c.mirror); got != c.want {
			t.Errorf("%s, to %v from %v: %t", c.code, c.change.Restart, c.mirror, got)
		}
	}
}
