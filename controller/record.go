package controller

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// positionsEvery is how often what moves goes to the ledger at most. Its age is
// shown wherever it is used.
const positionsEvery = 30 * time.Second

// ledger is what this term last wrote.
type ledger struct {
	written    map[string]bool   // the parts that hold something
	identities map[string]string // of the parts that this term wrote
	movedAt    time.Time         // when the standbys' state was written last
	placedAt   time.Time         // when positions were
	generation int64
	doubtful   bool // a write failed: whether it arrived is seen by reading first
	encoded    status.Encoded
	budget     budget
}

func newLedger(parts map[string][]byte) ledger {
	l := ledger{written: map[string]bool{}, identities: map[string]string{}}
	for name := range parts {
		l.written[name] = true
	}
	return l
}

// record writes the parts that are due, all in one transaction: a reader finds
// all of them, or all as they were.
func (c *Controller) record(ctx context.Context, now status.Status) error {
	if c.etcdSpace().short() {
		return nil // the condition says it
	}
	at := c.deps.Now()
	whole, identities, err := c.identities(now)
	if err != nil {
		return err
	}
	parts, err := c.urgent(now, at, whole, identities)
	if err != nil {
		return err
	}
	if !c.ledger.budget.allows(parts, at, 0) {
		return nil // what changed meanwhile goes with the next write
	}
	if parts, err = c.withMoved(parts, at, identities); err != nil {
		return err
	}
	if err := c.save(ctx, parts); err != nil {
		return err
	}
	c.ledger.budget.spend(parts, at)
	for name := range parts {
		c.ledger.identities[name] = identities[name]
		c.ledger.written[name] = identities[name] != "" || name == status.PartStandbys
	}
	return nil
}

// identities gives the cluster's part, and of each part what makes it due when
// it changes.
func (c *Controller) identities(now status.Status) (status.Document, map[string]string, error) {
	whole, err := clusterPart(c.memory, now)
	if err != nil {
		return whole, nil, err
	}
	slots, err := c.ledger.encoded.Slots(now)
	if err != nil {
		return whole, nil, err
	}
	places, err := c.ledger.encoded.Identities(c.memory)
	if err != nil {
		return whole, nil, err
	}
	all := map[string]string{status.PartCluster: whole.Identity}
	for _, parts := range []map[string][]byte{slots, places} {
		for name, text := range parts {
			all[name] = string(text)
		}
	}
	return whole, all, nil
}

// maxClusterPart is below the 64 KB of a part, which the ledger does not take more of.
const maxClusterPart = 60 << 10

// clusterPart is the cluster's part with as many conditions as it has room for. There
// may be one of each slot, and nothing is written anywhere before a new generation is.
func clusterPart(mem plan.Memory, s status.Status) (status.Document, error) {
	for {
		doc, err := status.ClusterPart(mem, s)
		if err != nil || len(doc.Text) <= maxClusterPart || len(s.Conditions) == 0 {
			return doc, err
		}
		small, err := status.Packed(doc.Text)
		if err != nil || len(small) <= maxClusterPart {
			return doc, err
		}
		s.Conditions = s.Conditions[:len(s.Conditions)/2]
	}
}

// urgent gives the parts in which something has changed; what holds no slot any
// more is emptied. A successor that does not know of a slot cannot say that it is
// missing.
func (c *Controller) urgent(now status.Status, at time.Time, whole status.Document, identities map[string]string) (map[string][]byte, error) {
	changed := map[string]bool{}
	for name, identity := range identities {
		if before, known := c.ledger.identities[name]; !known || before != identity {
			changed[name] = true
		}
	}
	parts, err := status.SlotTexts(now, changed)
	if err != nil {
		return nil, err
	}
	places, err := status.PositionParts(c.memory, at, changed)
	if err != nil {
		return nil, err
	}
	maps.Copy(parts, places)
	if changed[status.PartCluster] {
		parts[status.PartCluster] = whole.Text
	}
	for name, holds := range c.ledger.written {
		if empty, ok := status.Emptied(name); ok && holds && identities[name] == "" {
			parts[name] = empty
		}
	}
	return packed(parts)
}

// withMoved adds what only moves, where that is due: the small state of the
// standbys, and positions, which must leave room for what changes.
func (c *Controller) withMoved(parts map[string][]byte, at time.Time, identities map[string]string) (map[string][]byte, error) {
	if at.Sub(c.ledger.movedAt) >= positionsEvery {
		standbys, err := status.StandbysPart(c.memory, at)
		if err != nil {
			return nil, err
		}
		parts[status.PartStandbys] = standbys
		c.ledger.movedAt = at
	}
	if at.Sub(c.ledger.placedAt) < positionsEvery {
		return parts, nil
	}
	c.ledger.placedAt = at // also where it is too much now: it is tried again after as long
	places, err := status.PositionParts(c.memory, at, nil)
	if err != nil {
		return nil, err
	}
	if places, err = packed(places); err != nil {
		return nil, err
	}
	if maps.Copy(places, parts); c.ledger.budget.allows(places, at, budgetBurst/2) {
		return places, nil
	}
	return parts, nil
}

func packed(parts map[string][]byte) (map[string][]byte, error) {
	out := make(map[string][]byte, len(parts))
	for name, text := range parts {
		var err error
		if out[name], err = status.Packed(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Controller) save(ctx context.Context, parts map[string][]byte) error {
	if len(parts) == 0 {
		return nil
	}
	if c.ledger.doubtful {
		if _, err := c.term.Load(ctx); err != nil {
			return fmt.Errorf("reading the ledger again after a failed write: %w", err)
		}
		c.ledger.doubtful = false
	}
	if err := c.term.Save(ctx, parts); err != nil {
		c.ledger.doubtful = true
		return err
	}
	return nil
}

// rememberFirst writes a new generation to the ledger before any server sees
// it: a successor that knew only the old one would take a hold that was gone
// for one that never was. It is small, and written whatever the ledger may cost.
func (c *Controller) rememberFirst(ctx context.Context, mem plan.Memory) error {
	if mem.Generation == c.ledger.generation {
		return nil
	}
	last, _ := c.Status()
	last.Conditions = lasting(last.Conditions)
	last.Scope = c.cfg.Policy.Scope
	last.Leader = status.Leader{Name: c.cfg.Policy.Owner, Epoch: mem.Epoch}
	doc, err := clusterPart(mem, last)
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	if !mem.Server.Same(c.memory.Server) {
		// The cluster's part says that this promotion, or start, has been judged: what that
		// found must be known with it.
		if texts, err = status.PositionParts(mem, c.deps.Now(), nil); err != nil {
			return err
		}
	}
	texts[status.PartCluster] = doc.Text
	parts, err := packed(texts)
	if err != nil {
		return err
	}
	if err := c.save(ctx, parts); err != nil {
		return fmt.Errorf("recording generation %d before it is used: %w", mem.Generation, err)
	}
	c.ledger.generation = mem.Generation
	return nil
}
