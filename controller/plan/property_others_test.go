package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// ruin is what may be wrong with one slot, on every node at once.
var ruin = map[string]func(s *cluster.Slot, primary bool){
	"lost on the primary": func(s *cluster.Slot, primary bool) {
		if primary {
			s.Invalidated, s.Restart = "wal_removed", cluster.None[cluster.LSN]()
		}
	},
	"lost on the standbys": func(s *cluster.Slot, primary bool) {
		if !primary {
			s.Invalidated, s.Restart = "rows_removed", cluster.None[cluster.LSN]()
		}
	},
	"without a position": func(s *cluster.Slot, _ bool) { s.Confirmed = cluster.None[cluster.LSN]() },
	"in use everywhere":  func(s *cluster.Slot, _ bool) { s.ActivePID = 4711 },
	"another directory":  func(s *cluster.Slot, primary bool) { s.Incarnation.Inode = 9 },
	"without a marker":   func(s *cluster.Slot, _ bool) { s.Marker = nil },
	"of another plugin":  func(s *cluster.Slot, primary bool) { s.Plugin = "wal2json" },
	"without its WAL":    func(s *cluster.Slot, _ bool) { s.WALok, s.Snapshot = false, cluster.SnapshotBad },
	"not saved":          func(s *cluster.Slot, _ bool) { s.Saved = false },
	"two-phase":          func(s *cluster.Slot, _ bool) { s.TwoPhase = true },
}

// One slot never changes what is done for another: with it in ruins, the others
// get the same changes, the same drops and the same verdicts.
func TestPropertyOneSlotNeverChangesAnothersActions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := later(t, 20)
		spoil := ruin[rapid.SampledFrom(slices.Sorted(maps.Keys(ruin))).Draw(t, "ruin")]
		if f.w.primary() == nil {
			return
		}
		for _, slot := range slotNames {
			if f.w.primary().slots[slot] == nil {
				f.w.createSlot(slot)
			}
		}
		o := f.w.observe()
		whole := Decide(f.w.now, f.w.policy, o, f.w.memory)
		for node, fact := range o.Nodes {
			slots := slices.Clone(fact.Value.Slots)
			for i := range slots {
				if slots[i].Name == "app" {
					spoil(&slots[i], node == whole.Primary)
				}
			}
			fact.Value.Slots = slots
			o.Nodes[node] = fact
		}
		broken := Decide(f.w.now, f.w.policy, o, f.w.memory)
		if d := cmp.Diff(othersOf(whole), othersOf(broken)); d != "" {
			t.Fatal(d)
		}
	})
}

func othersOf(pl Plan) map[string]string {
	out := map[string]string{}
	for _, v := range pl.Verdicts {
		if v.Slot != "app" {
			out["verdict "+v.Slot+" "+v.Standby] = string(v.State) + " " + string(v.Reason) + " " + v.Message
		}
	}
	for _, s := range pl.Steps {
		for _, ch := range s.Changes {
			if ch.Name != "app" {
				out["change "+ch.Name+" "+s.Node] = fmt.Sprint(ch.Position)
			}
		}
		for _, n := range s.Names {
			if n != "app" && s.Kind != StepGate && s.Kind != StepSessions {
				out[string(s.Kind)+" "+n+" "+s.Node] = s.ID
			}
		}
		// Its names are no slots: it is done as soon as one slot waits for it.
		if s.Kind == StepSessions && slices.ContainsFunc(pl.Verdicts, func(v Verdict) bool {
			return v.Slot != "app" && v.Standby == s.Node && v.Reason == ReasonOldSession
		}) {
			out["sessions "+s.Node] = s.ID
		}
	}
	return out
}
