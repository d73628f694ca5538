package switchover

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Who leads afterwards is who has Patroni's key and was seen to take writes on a
// later timeline; as long as nobody does, that is awaited.
func TestLedIsWhoTakesWrites(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(f *Facts)
		led     string
		awaited bool
	}{
		"b":                      {func(*Facts) {}, "b", false},
		"the keys are not known": {func(f *Facts) { f.Keys.Err = "etcd does not answer" }, "", false},
		"nothing was asked":      {func(f *Facts) { f.Record = known(cluster.None[Record]()) }, "", false},
		"b is silent by now": {func(f *Facts) {
			fact := f.Nodes["b"]
			fact.Err = "timeout"
			f.Nodes["b"] = fact
		}, "", true},
		"b is a standby still": {func(f *Facts) { f.node("b", func(n *Node) { n.Node.InRecovery = true }) }, "", true},
		"b is on a's timeline": {func(f *Facts) { f.node("b", func(n *Node) { n.Node.Timeline = 1 }) }, "", true},
	} {
		_, m, f := underway("me")
		f.led("b", 2)
		c.spoil(&f)
		if m = m.observe(f); m.led != c.led || m.awaited != c.awaited || m.FirstWritable.IsZero() != (c.led == "") {
			t.Errorf("%s: %q leads, awaited %t, since %s", name, m.led, m.awaited, m.FirstWritable)
		}
	}
}

// It leads since it was seen first; on another timeline it has begun anew, and so has another.
func TestSinceWhenItLeads(t *testing.T) {
	_, m, f := underway("me")
	for _, c := range []struct {
		who      string
		timeline cluster.Timeline
		after    time.Duration
		since    time.Duration
	}{
		{"b", 2, time.Second, time.Second}, {"b", 2, 2 * time.Second, time.Second}, {"b", 3, 3 * time.Second, 3 * time.Second},
		{"c", 3, 4 * time.Second, 4 * time.Second},
	} {
		f.Now = begun.Add(c.after)
		f.led(c.who, c.timeline)
		if m = m.observe(f); m.led != c.who || m.ledOn != c.timeline || !m.FirstWritable.Equal(begun.Add(c.since)) {
			t.Errorf("%+v: %s on %d since %s", c, m.led, m.ledOn, m.FirstWritable)
		}
	}
}

// What was found counts for the leader and the timeline on which it was found.
func TestVerifiedOfThisLeader(t *testing.T) {
	m := Memory{led: "b", ledOn: 2}
	found := Verified{Leader: "b", Timeline: 2, Slots: []Found{{Name: "cdc"}}}
	for name, c := range map[string]struct {
		facts plan.Fact[Verified]
		ok    bool
	}{
		"of it":               {known(found), true},
		"not asked for yet":   {plan.Fact[Verified]{Value: found}, false},
		"failed":              {plan.Fact[Verified]{Value: found, At: begun, Err: "timeout"}, false},
		"of another":          {known(Verified{Leader: "c", Timeline: 2}), false},
		"of another timeline": {known(Verified{Leader: "b", Timeline: 3}), false},
	} {
		if all, ok := m.verified(Facts{Verified: c.facts}); ok != c.ok || (len(all) == 1) != c.ok {
			t.Errorf("%s: %t %v", name, ok, all)
		}
	}
}
