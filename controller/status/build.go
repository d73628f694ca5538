package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Inputs is what one cycle leaves for its Status.
type Inputs struct {
	Scope, Owner string
	Now          time.Time
	Observation  plan.Observation
	Plan         plan.Plan
	Memory       plan.Memory
	Verdicts     []plan.Verdict
	Conditions   []plan.Condition
}

// Build makes the document of one cycle. The same inputs give the same
// document, whatever their order.
func Build(in Inputs) Status {
	s := Status{
		SchemaVersion: SchemaVersion,
		Scope:         in.Scope,
		At:            in.Now,
		ObservedAt:    in.Observation.Begun,
		Source:        "daemon",
		Cycle:         in.Observation.Cycle,
		Leader:        Leader{Name: in.Owner, Epoch: in.Memory.Epoch},
		Members:       members(in),
		Slots:         slots(in),
		Conditions:    findings(in.Conditions),
	}
	s.Complete = in.Plan.Primary != "" && in.Observation.Topology.OK()
	for _, m := range s.Members {
		s.Complete = s.Complete && m.Role != "unknown"
	}
	if read, ok := primaryRead(in); ok {
		s.Primary = &Primary{Node: in.Plan.Primary, Timeline: read.Node.Timeline, SystemID: read.Node.SystemID}
		s.Hold = hold(read, in.Memory.Generation)
	}
	return s
}

func primaryRead(in Inputs) (plan.NodeRead, bool) {
	fact, ok := in.Observation.Nodes[in.Plan.Primary]
	return fact.Value, ok && in.Plan.Primary != "" && fact.OK()
}

func hold(read plan.NodeRead, generation int64) *HoldState {
	h := &HoldState{Generation: generation}
	for _, slot := range read.Slots {
		if slot.Name == cluster.HoldName {
			h.CatalogXmin = slot.CatalogXmin
		}
	}
	return h
}

func members(in Inputs) []Member {
	out := []Member{}
	for _, m := range in.Observation.Topology.Value.Members {
		fact := in.Observation.Nodes[m.Name]
		member := Member{Node: m.Name, Role: "unknown", Error: fact.Err, Hint: fact.Hint}
		switch foreign := fact.Value.Node.SystemID; {
		case !fact.OK():
		case in.Memory.SystemID != 0 && foreign != in.Memory.SystemID:
			member.Error = fmt.Sprintf("its address leads to system %s, not to the cluster's %s", foreign, in.Memory.SystemID)
			member.Hint = "mend the member's conninfo; nothing is ever written there"
		default:
			member.Replay = fact.Value.Node.Replay
			member.Role = "standby"
			if !fact.Value.Node.InRecovery {
				member.Role = "primary"
			}
		}
		out = append(out, member)
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// slots gives one row for each selected slot: as the primary's last read
// shows it, else as it is remembered.
func slots(in Inputs) []Slot {
	rows := map[string]*Slot{}
	for name, note := range in.Memory.Slots {
		if note.AbsentReads > 0 {
			continue // it is remembered until its mirrors are gone
		}
		row := &Slot{Name: name, Database: note.Database, Plugin: note.Plugin, Standbys: []Standby{}}
		if note.Last.OK {
			row.Restart = cluster.Some(note.Last.V.Restart)
			row.Confirmed = cluster.Some(note.Last.V.Confirmed)
			row.CatalogXmin = cluster.Some(note.Last.V.CatalogXmin)
		}
		rows[name] = row
	}
	if read, ok := primaryRead(in); ok {
		for _, seen := range read.Slots {
			if row := rows[seen.Name]; row != nil {
				row.Database, row.Plugin = seen.Database, seen.Plugin
				row.Restart, row.Confirmed, row.CatalogXmin = seen.Restart, seen.Confirmed, seen.CatalogXmin
			}
		}
	}
	for _, v := range in.Verdicts {
		row := rows[v.Slot]
		if row == nil {
			row = &Slot{Name: v.Slot}
			rows[v.Slot] = row
		}
		row.Standbys = append(row.Standbys, standby(v))
	}
	return sorted(rows)
}

func sorted(rows map[string]*Slot) []Slot {
	out := make([]Slot, 0, len(rows))
	for _, row := range rows {
		slices.SortFunc(row.Standbys, func(a, b Standby) int { return cmp.Compare(a.Node, b.Node) })
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b Slot) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func standby(v plan.Verdict) Standby {
	row := Standby{
		Node: v.Standby, Verdict: v.State, Reason: v.Reason, Message: v.Message, Hint: v.Hint,
		Since: v.Since, Mirror: v.Mirror, LagBytes: v.LagBytes,
	}
	if v.ProofAge.OK {
		row.ProofAge = cluster.Some(v.ProofAge.V.Seconds())
	}
	return row
}

func findings(conditions []plan.Condition) []Finding {
	out := make([]Finding, 0, len(conditions))
	for _, c := range conditions {
		out = append(out, Finding(c))
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	return out
}
