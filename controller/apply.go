package controller

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// apply makes the plan's calls: stages in order, nodes of one stage side by
// side, the steps of one node one after the other. Before each call the lease
// is looked at. A step whose need failed is skipped and says why.
func (c *Controller) apply(ctx context.Context, todo plan.Plan) []plan.StepOutcome {
	outcomes := map[string]plan.StepOutcome{}
	var order []string
	for from := 0; from < len(todo.Steps); {
		upto := from
		for upto < len(todo.Steps) && todo.Steps[upto].Stage == todo.Steps[from].Stage {
			order = append(order, todo.Steps[upto].ID)
			upto++
		}
		for _, o := range c.stage(ctx, todo.Steps[from:upto], outcomes) {
			outcomes[o.StepID] = o
		}
		from = upto
	}
	all := make([]plan.StepOutcome, 0, len(order))
	for _, id := range order {
		all = append(all, outcomes[id])
	}
	return all
}

// stage runs the steps of one stage; earlier holds what came of the stages before.
func (c *Controller) stage(ctx context.Context, steps []plan.Step, earlier map[string]plan.StepOutcome) []plan.StepOutcome {
	var nodes []string
	byNode := map[string][]plan.Step{}
	for _, s := range steps {
		if byNode[s.Node] == nil {
			nodes = append(nodes, s.Node)
		}
		byNode[s.Node] = append(byNode[s.Node], s)
	}
	results := make([][]plan.StepOutcome, len(nodes))
	var all sync.WaitGroup
	for i, name := range nodes {
		all.Go(func() {
			done := maps.Clone(earlier)
			for _, s := range byNode[name] {
				o := c.step(ctx, s, done)
				done[s.ID] = o
				results[i] = append(results[i], o)
			}
		})
	}
	all.Wait()
	var flat []plan.StepOutcome
	for _, r := range results {
		flat = append(flat, r...)
	}
	return flat
}

func (c *Controller) step(ctx context.Context, s plan.Step, done map[string]plan.StepOutcome) (out plan.StepOutcome) {
	out = plan.StepOutcome{StepID: s.ID}
	defer func() {
		if p := recover(); p != nil {
			out.Err = caught(c.deps.Logger, "step "+s.ID, p).Error()
		}
	}()
	s, why := plan.Ready(s, done)
	if why != "" {
		out.Skipped = why
		return out
	}
	if !c.term.Valid(c.deps.Now()) {
		out.Skipped = "the lease is no longer ours"
		return out
	}
	r := c.readers[s.Node]
	if r == nil || r.node == nil || r.flight != nil {
		out.Skipped = fmt.Sprintf("node %s is not at hand", s.Node)
		return out
	}
	if why := r.stall.rests(s.Node, r.last.Value.Node, c.deps.Now()); why != "" {
		out.Skipped = why
		return out
	}
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.term.Context(), stop)()
	for i, part := range parts(s) {
		if i > 0 && (!c.term.Valid(c.deps.Now()) || c.nearlyOver(ctx)) {
			out.Cut = true
			return out
		}
		begun := c.deps.Now()
		rows, err := r.node.Do(bounded, part)
		now := c.deps.Now()
		r.stall.note(r.last.Value.Node, s.Kind, err, now.Sub(begun), ctx.Err() != nil, now, c.cfg)
		if err != nil {
			out.Err = err.Error()
			return out
		}
		for j := range rows {
			rows[j].Node = s.Node
		}
		out.Outcomes = append(out.Outcomes, rows...)
	}
	return out
}

// One call carries so many changes at most, and so many bytes of snapshot files.
// What was done by then counts, whatever becomes of the next call.
const (
	maxChanges = 50
	maxFiles   = 16 << 20
)

// parts divides a step into the calls that it is made in.
func parts(s plan.Step) []plan.Step {
	if len(s.Changes) <= 1 {
		return []plan.Step{s}
	}
	var all []plan.Step
	from, bytes := 0, 0
	for i, ch := range s.Changes {
		if i > from && (i-from == maxChanges || bytes+len(ch.Snapshot.V) > maxFiles) {
			all = append(all, withChanges(s, s.Changes[from:i]))
			from, bytes = i, 0
		}
		bytes += len(ch.Snapshot.V)
	}
	return append(all, withChanges(s, s.Changes[from:]))
}

func withChanges(s plan.Step, changes []cluster.Change) plan.Step {
	s.Changes = changes
	return s
}

// nearlyOver reports whether less than half of the cycle's time is left: what
// has not begun by then is for the next cycle, which reads the nodes again.
func (c *Controller) nearlyOver(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < c.cfg.CycleTimeout/2
}

// changed names the standbys on which steps may have moved slots.
func changed(todo plan.Plan, done []plan.StepOutcome) map[string]bool {
	made := map[string]bool{}
	for _, out := range done {
		made[out.StepID] = out.Skipped == ""
	}
	names := map[string]bool{}
	for _, s := range todo.Steps {
		switch s.Kind {
		case plan.StepApply, plan.StepDrop, plan.StepHold:
			names[s.Node] = names[s.Node] || made[s.ID] && !s.OnPrimary
		}
	}
	return names
}
