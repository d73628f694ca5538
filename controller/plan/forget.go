package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NotForgettable says why a member cannot be given up.
type NotForgettable struct{ Why string }

func (e *NotForgettable) Error() string { return e.Why }

// Refused tells it from a call that did not come through.
func (e *NotForgettable) Refused() bool { return true }

// Forgettable refuses what is no member that is away: what answers is a member
// again with the next read.
func (m Memory) Forgettable(node string) error {
	note, known := m.Standbys[node]
	switch {
	case !known:
		return &NotForgettable{fmt.Sprintf("nothing is known of a member %q; known are %s", node, strings.Join(slices.Sorted(maps.Keys(m.Standbys)), ", "))}
	case node == m.Primary:
		return &NotForgettable{fmt.Sprintf("%s was the primary when it was seen last: nothing waits for it", node)}
	case note.AwaySince.IsZero() && !note.ReadAt.IsZero():
		return &NotForgettable{fmt.Sprintf("%s answers: stop it for good first, or its mirrors are only made anew", node)}
	}
	return nil
}

// Forget gives a member up for good: the next plan has the holds no longer wait
// for it, in the order in which members are given up. It is a member again as
// soon as it is read, and its mirrors are made anew then.
func (m *Memory) Forget(node string) {
	forgotten := cloned(m.Forgotten)
	forgotten[node] = true
	m.Forgotten = forgotten
}
