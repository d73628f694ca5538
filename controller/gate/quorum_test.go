package gate

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// In quorum mode Patroni also takes a member that is not synchronous, where enough of
// those that are have received no more; and it takes none without enough of them. b
// would lose its slot, and is refused only for a c that would be taken.
func TestQuorumDecidesWhoWouldBeTaken(t *testing.T) {
	voter := func(name string, received cluster.LSN) Candidate {
		return Candidate{Name: name, Received: received, Timeline: 1, Priority: 1, Sync: true}
	}
	outside := func(name string, received cluster.LSN) Candidate {
		c := voter(name, received)
		c.Sync = false
		return c
	}
	silent := func(c Candidate) Candidate {
		c.Trouble = "its Patroni does not answer"
		return c
	}
	barred := func(c Candidate) Candidate {
		c.NoFailover = true
		return c
	}
	dead := silent(voter("a", 0)) // the old primary
	cases := map[string]struct {
		quorum int64
		me     Candidate
		others []Candidate
		taken  bool
	}{
		"one of two that vote":                   {1, voter("b", 200), []Candidate{dead, voter("c", 200)}, true},
		"the only other one that votes":          {0, outside("b", 200), []Candidate{dead, voter("c", 200)}, true},
		"outside, with the one vote there is":    {0, voter("b", 200), []Candidate{dead, outside("c", 200)}, true},
		"outside, and one vote is too few":       {1, voter("b", 200), []Candidate{dead, outside("c", 200)}, false},
		"outside, with two votes":                {1, voter("b", 200), []Candidate{dead, outside("c", 200), voter("d", 150)}, true},
		"outside, and nobody votes":              {0, outside("b", 200), []Candidate{dead, outside("c", 200)}, false},
		"a vote of one that is silent":           {2, voter("b", 200), []Candidate{dead, voter("c", 200), silent(voter("d", 200))}, false},
		"a vote of one that is never promoted":   {2, voter("b", 200), []Candidate{dead, voter("c", 200), barred(voter("d", 200))}, false},
		"the old primary, back as a standby":     {3, voter("b", 200), []Candidate{voter("a", 200), silent(voter("c", 200))}, true},
		"the old primary, and another has more":  {3, voter("b", 200), []Candidate{voter("a", 200), outside("c", 201), silent(voter("d", 0))}, false},
		"no vote of a server that does not read": {1, voter("b", 0), []Candidate{dead, voter("c", 200)}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, f := scene()
			f.Local.Value.Slots = nil
			for _, other := range c.others {
				f.Ledger.Value.Verdicts[pairOf("cdc", other.Name)] = f.Ledger.Value.Verdicts[pairOf("cdc", "c")]
			}
			f.Rivals.Value = Field{Me: c.me, Others: c.others, Sync: true, SyncLeader: "a", Quorum: cluster.Some(c.quorum)}
			if d := decide(p, f); d.Allow == c.taken {
				t.Errorf("allow %v: %s", d.Allow, d.Line)
			}
		})
	}
}

func pairOf(slot, standby string) plan.Pair { return plan.Pair{Slot: slot, Standby: standby} }
