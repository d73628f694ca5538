package controller

import (
	"context"
	"fmt"
	"maps"
	"sync"

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
			out.Err = fmt.Sprintf("step %s panicked: %v", s.ID, p)
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
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.term.Context(), stop)()
	rows, err := r.node.Do(bounded, s)
	if err != nil {
		out.Err = err.Error()
		return out
	}
	for i := range rows {
		rows[i].Node = s.Node
	}
	out.Outcomes = rows
	return out
}
