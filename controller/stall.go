package controller

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// stall is what a node's hanging writes have earned it: no others for a while.
// A cycle ends when its last call does, so that a node whose calls all hang would
// cost the others a query_timeout in each.
type stall struct {
	kind  plan.StepKind // of the call that hung
	at    time.Time     // when it was given up
	pause time.Duration // how long nothing is written from then on; zero: nothing hung
	of    cluster.Node  // as it was read before that call
}

// maxPause is how many read timeouts a node is left alone for at most.
const maxPause = 4

// late is what an error of Node.Do may be: whether the call got no answer in the
// time that it had. context.DeadlineExceeded is one.
type late interface{ Timeout() bool }

// note takes in what came of a call to a node that took so long; over: the cycle's
// time was used up. The last of a cycle's calls may have had a moment only, which
// says nothing of its node.
func (s *stall) note(n cluster.Node, kind plan.StepKind, err error, took time.Duration, over bool, now time.Time, cfg Config) {
	if !s.concerns(n) {
		*s = stall{}
	}
	var why late
	switch {
	case !errors.As(err, &why) || !why.Timeout():
		if kind == s.kind {
			*s = stall{} // what hung answers again
		}
	case !over || took >= cfg.CycleTimeout/2:
		s.kind, s.at, s.pause, s.of = kind, now, min(max(2*s.pause, cfg.ReadTimeout), maxPause*cfg.ReadTimeout), n
	}
}

// rests says why nothing is written to the node yet, "" where it may be.
func (s *stall) rests(node string, n cluster.Node, now time.Time) string {
	left := s.pause - now.Sub(s.at)
	if left <= 0 || !s.concerns(n) {
		return ""
	}
	return fmt.Sprintf("node %s gave no answer in time to the last call that writes (%s): to let the others go on, nothing is written there before %s",
		node, s.kind, s.at.Add(s.pause).UTC().Format(time.TimeOnly))
}

// concerns reports whether a node is still what hung. One that was started since
// may be well, and what must be done on one that was promoted cannot wait: no
// consumer may find a mirror there that is to be dropped.
func (s *stall) concerns(n cluster.Node) bool {
	return n.Started.Equal(s.of.Started) && n.InRecovery == s.of.InRecovery
}
