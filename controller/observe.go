package controller

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// reader is one node's session and the read that may be under way on it. A
// node that does not answer keeps its read in flight; the cycles go on without it.
type reader struct {
	member cluster.Member
	node   Node
	dial   error
	flight chan plan.Fact[plan.NodeRead] // of capacity 1; nil when no read is under way
	missed bool                          // a cycle has waited for that read in vain
	last   plan.Fact[plan.NodeRead]
	stall  stall // of its writes; only its own step touches it while steps run
	cancel context.CancelFunc
	watch  *watcher // nil until a leader has begun to watch
}

// observe reads the topology and all nodes side by side, then the snapshot
// files that the primary's slots will need.
func (c *Controller) observe(ctx context.Context) plan.Observation {
	begun := c.deps.Now()
	seen := plan.Observation{
		Begun: begun, Cycle: c.cycle,
		Nodes: map[string]plan.Fact[plan.NodeRead]{}, Snapshots: map[string][]byte{},
	}
	asking, cancel := context.WithTimeout(ctx, min(c.cfg.ReadTimeout, c.cfg.CycleTimeout/4))
	topology, err := c.deps.Source.Topology(asking)
	cancel()
	seen.Topology = plan.Fact[cluster.Topology]{Value: topology, At: begun}
	if err != nil {
		seen.Topology.Err = err.Error() // the members known before are read all the same
	}
	c.logTopology(seen.Topology)
	c.matchReaders(topology.Members)
	for _, m := range topology.Members {
		c.readers[m.Name].start(c.cfg.ReadTimeout, c.deps.Now, c.deps.Logger)
	}
	c.collect(ctx, &seen)
	c.fetchSnapshots(ctx, &seen)
	return seen
}

// collect takes half of the cycle's time at most: a node that has just fallen
// silent must leave the other half for what the others need.
func (c *Controller) collect(ctx context.Context, seen *plan.Observation) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.CycleTimeout/2)
	defer cancel()
	for name, r := range c.readers {
		seen.Nodes[name] = r.collect(ctx, c.deps.Now)
	}
	separate(seen.Nodes, c.memory.Primary)
}

// matchReaders opens a session per member and closes those of nodes that left
// or moved to another address. One that could not be opened is tried again: a
// passfile or a certificate may have come meanwhile.
func (c *Controller) matchReaders(members []cluster.Member) {
	named := map[string]bool{}
	for _, m := range members {
		named[m.Name] = true
		if r := c.readers[m.Name]; r != nil && r.dial == nil && r.member.Conninfo == m.Conninfo && r.member.Unusable == m.Unusable {
			continue
		} else if r != nil {
			r.close()
		}
		node, err := c.deps.Dial(m)
		c.readers[m.Name] = &reader{member: m, node: node, dial: err}
	}
	for name, r := range c.readers {
		if !named[name] {
			r.close()
			delete(c.readers, name)
		}
	}
}

func (c *Controller) closeReaders() {
	for name, r := range c.readers {
		r.close()
		delete(c.readers, name)
	}
}

func (r *reader) close() {
	r.abandon()
	if r.node != nil {
		r.node.Close()
	}
	if r.watch != nil {
		r.watch.stop()
	}
}

// abandon ends the read that is under way, and waits until it has ended.
func (r *reader) abandon() {
	if r.flight != nil {
		r.cancel()
		<-r.flight
		r.flight, r.cancel = nil, nil
	}
}

// start begins a read unless one is still under way. The read has its own
// limit and outlives the cycle: cancelling it would only cost the session.
func (r *reader) start(limit time.Duration, now func() time.Time, log hclog.Logger) {
	if r.flight != nil || r.dial != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	flight := make(chan plan.Fact[plan.NodeRead], 1)
	r.flight, r.cancel, r.missed = flight, cancel, false
	begun := now()
	go func() {
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				flight <- factOf(plan.NodeRead{}, begun, caught(log, "reading node "+r.member.Name, p))
			}
		}()
		read, err := r.node.Read(ctx)
		flight <- factOf(read, begun, err)
	}()
}

// collect waits for the read that is under way. A node that failed its last
// read is given a moment only, and none where a cycle has waited for this very read:
// who is black-holed must not slow each cycle of the others. An answer that is
// there counts, also where another node has used the time up.
func (r *reader) collect(ctx context.Context, now func() time.Time) plan.Fact[plan.NodeRead] {
	if r.dial != nil {
		return factOf(plan.NodeRead{}, now(), r.dial)
	}
	failed := r.last.Err != ""
	if failed {
		patience := failedPatience
		if r.missed {
			patience = 0
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	select {
	case fact := <-r.flight:
		return r.landed(fact)
	case <-ctx.Done():
	}
	select {
	case fact := <-r.flight:
		return r.landed(fact)
	default:
	}
	r.missed = true
	if !failed {
		r.last.Err, r.last.Reason, r.last.Hint = "no answer within this cycle's time", plan.ReasonUnreachable, ""
	}
	return r.last
}

func (r *reader) landed(fact plan.Fact[plan.NodeRead]) plan.Fact[plan.NodeRead] {
	r.flight, r.cancel, r.last = nil, nil, fact
	return fact
}

// failedPatience is how long a cycle waits for a node whose last read failed:
// a healthy one answers within milliseconds.
const failedPatience = 50 * time.Millisecond

func factOf(read plan.NodeRead, at time.Time, err error) plan.Fact[plan.NodeRead] {
	fact := plan.Fact[plan.NodeRead]{Value: read, At: at}
	if err == nil {
		return fact
	}
	fact.Err, fact.Reason = err.Error(), plan.ReasonUnreachable
	var why reasoned
	if errors.As(err, &why) {
		fact.Reason = plan.Reason(why.Reason())
	}
	var what hinted
	if errors.As(err, &what) {
		fact.Hint = what.Hint()
	}
	return fact
}

// fetchSnapshots asks the primary for the files that plan wants, and about
// slots that have none. Without them a mirror waits for its next restart_lsn;
// that is no reason to fail the cycle.
func (c *Controller) fetchSnapshots(ctx context.Context, seen *plan.Observation) {
	primary := plan.FindPrimary(*seen, c.memory)
	fact, ok := seen.Nodes[primary]
	if !ok || !fact.OK() {
		return
	}
	wanted := plan.WantSnapshots(c.cfg.Policy, c.memory, fact.Value.Slots)
	if len(wanted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ReadTimeout)
	defer cancel()
	node := c.readers[primary].node
	files, err := node.Snapshots(ctx, wanted)
	if err != nil {
		c.deps.Logger.Warn("fetching snapshots from the primary", "node", primary, "error", err)
		return
	}
	for _, s := range fact.Value.Slots {
		if bytes, ok := files[s.Restart.Or(0)]; ok {
			seen.Snapshots[s.Name] = bytes
		}
	}
	seen.Walks = c.walk(ctx, node, plan.WantWalks(c.deps.Now(), c.cfg.Policy, c.memory, fact.Value.Slots, files))
}

// walk asks the primary to prove slots. One that failed counts as asked: the
// next cycle must not wait for it again.
func (c *Controller) walk(ctx context.Context, node Node, wanted []plan.WalkWanted) map[string]plan.Walk {
	if len(wanted) == 0 {
		return nil
	}
	walks, err := node.Walks(ctx, wanted, c.cfg.Policy.MaxWalk)
	if err != nil {
		c.deps.Logger.Warn("proving slots on the primary", "error", err)
		walks = map[string]plan.Walk{}
	}
	for _, w := range wanted {
		answer := walks[w.Slot]
		answer.Position, answer.At = w.Position, c.deps.Now()
		walks[w.Slot] = answer
	}
	return walks
}
