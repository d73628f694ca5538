package cases

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// Standbys that get their WAL late, or from another standby. The last of each is
// promoted.
var (
	delayed               = harness.Options{OnB: lab.StandbyOptions{ApplyDelay: 2 * time.Second}}
	delayedWithFeedback   = harness.Options{OnB: late(withFeedback())}
	cascading             = harness.Options{Standbys: 2, Cascade: true}
	cascadingWithFeedback = harness.Options{Standbys: 2, Cascade: true, OnB: withFeedback()}
)

func late(o lab.StandbyOptions) lab.StandbyOptions {
	o.ApplyDelay = delayed.OnB.ApplyDelay
	return o
}

// chains are all of them, for cases about catalog rows: feedback pins those too.
var chains = map[string]harness.Options{
	"delayed":                  delayed,
	"delayed, with feedback":   delayedWithFeedback,
	"cascading":                cascading,
	"cascading, with feedback": cascadingWithFeedback,
}

// each runs a case on the standbys of a table, all at the same time.
func each(t *testing.T, standbys map[string]harness.Options, run func(t *testing.T, o harness.Options)) {
	t.Helper()
	for name, o := range standbys {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Lasts = 8 * time.Minute
			run(t, o)
		})
	}
}

// last is the standby at the end of the chain.
func last(s *harness.Scene) *lab.Node {
	nodes := s.Nodes()
	return nodes[len(nodes)-1]
}
