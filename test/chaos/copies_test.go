package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// during is called by a fault while it is in force; after, when it is over. One of
// them is the moment of the choice's copy.
func (w *world) during(c choice) { w.copyIf(c, c.copied && c.during) }

func (w *world) after(c choice) { w.copyIf(c, c.copied && !c.during) }

func (w *world) copyIf(c choice, now bool) {
	if !now {
		return
	}
	doc, ok := w.claims.wait(5 * time.Second)
	standbys := w.standbys()
	node := one(standbys, c.whose)
	if !ok || len(safe(doc, node)) == 0 {
		w.report.unclaimed++
		w.say("  no copy of %s: nothing is claimed of it now", node.Name())
		return
	}
	w.must(w.prove(node, doc))
}

// prove copies a standby as it is at this moment, promotes the copy, and decodes
// each slot that the document calls SAFE there: all that the copy's own WAL owes
// from the slot's position on must come, and the position must not be past what
// the consumer confirmed. Each of these has a bound of its own, and decoding may
// take as long as it gets on. The load rests meanwhile: else the slots would owe the
// more, and the next proof take the longer, the longer this one takes.
func (w *world) prove(node *lab.Node, doc status.Status) (err error) {
	w.report.copies++
	copied, err := w.lab.NewNode(fmt.Sprintf("copy%d", w.report.copies))
	if err != nil {
		return err
	}
	before, begun := w.violated(), time.Now()
	defer func() {
		took := time.Since(begun)
		w.report.proofs += took
		w.report.proof = max(w.report.proof, took)
		ctx, cancel := w.within(patience)
		defer cancel()
		if w.violated() == before {
			err = errors.Join(err, w.lab.Remove(ctx, copied))
		} else {
			err = errors.Join(err, copied.StopImmediate(ctx)) // its folder is the evidence
		}
	}()
	if err := w.bounded(func(ctx context.Context) error { return copied.CopyOf(ctx, node) }); err != nil {
		return err
	}
	confirmed := w.confirmed()
	w.load.Pause()
	defer w.load.Resume()
	for _, do := range []func(context.Context) error{
		func(ctx context.Context) error { return copied.Set(ctx, map[string]string{"autovacuum": "off"}) },
		copied.Start, copied.Promote,
	} {
		if err := w.bounded(do); err != nil {
			return fmt.Errorf("promoting a copy of %s: %w", node.Name(), err)
		}
	}
	return w.decodeAll(copied, node, doc, confirmed)
}

// bounded gives one thing to be done a bound of its own.
func (w *world) bounded(do func(context.Context) error) error {
	ctx, cancel := w.within(patience)
	defer cancel()
	return do(ctx)
}

func (w *world) violated() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.violations)
}

// confirmed is how far each consumer has told any server that it is, or somebody has
// moved its slot by hand.
func (w *world) confirmed() map[string]cluster.LSN {
	w.mu.Lock()
	all := maps.Clone(w.moved)
	w.mu.Unlock()
	for _, r := range w.readers {
		r.mu.Lock()
		if r.stream != nil {
			r.confirmed = max(r.confirmed, r.stream.Confirmed())
		}
		all[r.slot] = max(all[r.slot], r.confirmed)
		if r.refused {
			all[r.slot] = math.MaxUint64 // made anew, and nobody has seen yet where
		}
		r.mu.Unlock()
	}
	return all
}

func (w *world) decodeAll(copied, node *lab.Node, doc status.Status, confirmed map[string]cluster.LSN) error {
	ctx, cancel := w.within(patience)
	defer cancel()
	positions := map[string]cluster.LSN{}
	var databases = map[string]string{}
	rows, err := copied.DB("").Strings(ctx, `SELECT slot_name || ' ' || confirmed_flush_lsn || ' ' || database || ' ' || plugin
		FROM pg_replication_slots WHERE slot_type = 'logical' AND confirmed_flush_lsn IS NOT NULL`)
	if err != nil {
		return err
	}
	for _, row := range rows {
		fields := strings.Fields(row)
		at, err := cluster.ParseLSN(fields[1])
		if err != nil {
			return err
		}
		positions[fields[0]] = at
		databases[fields[0]] = fields[2]
	}
	fork, err := copied.Fork(ctx)
	if err != nil {
		return err
	}
	claimed := safe(doc, node)
	var there []string
	for _, slot := range slices.Sorted(maps.Keys(claimed)) {
		if _, ok := positions[slot]; !ok {
			w.violate("slot %s is SAFE on %s in cycle %d (epoch %d, observed %s), and a copy of it has no such slot", slot, node.Name(),
				doc.Cycle, doc.Leader.Epoch, doc.ObservedAt.Format(time.StampMilli))
			continue
		}
		there = append(there, slot)
	}
	w.report.unproven += len(positions) - len(there)
	if len(there) == 0 {
		return nil
	}
	oldest := fork
	for _, slot := range there {
		oldest = min(oldest, positions[slot])
	}
	owed, err := lab.ReadOwed(ctx, copied, oldest, fork)
	if err != nil {
		return err
	}
	var sums []string
	for _, slot := range there {
		at, ends := positions[slot], confirmed[slot]
		if at > ends {
			w.violate("slot %s, SAFE on %s, is at %s, and its consumer has confirmed %s: what lies between is lost", slot, node.Name(), at, ends)
		}
		if databases[slot] != "postgres" {
			sum, err := w.decodeElsewhere(copied, databases[slot], slot)
			if err != nil {
				return err
			}
			sums = append(sums, sum)
			continue
		}
		sum, err := w.decode(copied, node, slot, at, owed.Since(at))
		if err != nil {
			return err
		}
		sums = append(sums, sum)
	}
	w.say("  copy of %s as of cycle %d: %s", node.Name(), doc.Cycle, strings.Join(sums, ", "))
	return nil
}

// decode streams a slot to its end, as its consumer would.
func (w *world) decode(copied, node *lab.Node, slot string, at cluster.LSN, truth lab.Truth) (string, error) {
	ctx, cancel := w.within(patience) // of all but the streaming
	defer cancel()
	deliveries := lab.NewDeliveries()
	consumer := &lab.Consumer{Slot: slot, Deliveries: deliveries}
	stream, err := consumer.Start(ctx, copied)
	if err != nil {
		w.violate("slot %s, SAFE on %s, cannot be streamed from on a copy of it: %v", slot, node.Name(), err)
		return slot, nil
	}
	last, end, err := w.sentinel(ctx, copied)
	if err != nil {
		return slot, err
	}
	if err := w.readTo(last, end, func() (*lab.Stream, bool) { return stream, false }); err != nil {
		w.violate("slot %s, SAFE on %s, cannot be decoded to its end at %s on a copy of it: %v", slot, node.Name(), end, err)
	}
	if err := stream.Stop(); err != nil && !errors.Is(err, lab.ErrServerGone) {
		w.say("  the stream of %s on the copy: %v", slot, err)
	}
	a := deliveries.Account(slot, truth, lab.Bounds{Positions: map[int]cluster.LSN{stream.Number(): at}}, deliveries)
	w.report.proven(a.Committed+a.Messages, len(a.Lost)+len(a.LostNotes))
	if len(a.Lost)+len(a.LostNotes) > 0 {
		w.violate("slot %s, SAFE on %s, at %s on a copy of it: of %d rows and %d messages that are owed %d and %d do not come: %v %q", slot, node.Name(), at,
			a.Committed, a.Messages, len(a.Lost), len(a.LostNotes), a.Lost[:min(10, len(a.Lost))], a.LostNotes[:min(10, len(a.LostNotes))])
	}
	for _, problem := range a.Problems[:min(3, len(a.Problems))] {
		w.violate("slot %s, SAFE on %s, on a copy of it: %s", slot, node.Name(), problem)
	}
	return fmt.Sprintf("%s owes %d+%d", slot, a.Committed, a.Messages), nil
}

// decodeElsewhere reads a slot of a database of its own, whose table has nothing
// but what the slot owes.
func (w *world) decodeElsewhere(copied *lab.Node, database, slot string) (string, error) {
	ctx, cancel := w.within(patience)
	defer cancel()
	var want, got int
	if err := copied.DB(database).QueryRow(ctx, "SELECT count(*) FROM t").Scan(&want); err != nil {
		return slot, fmt.Errorf("reading database %s of a copy: %w", database, err)
	}
	err := copied.DB(database).QueryRow(ctx, "SELECT count(*) FROM pg_logical_slot_peek_changes($1, NULL, NULL) WHERE data LIKE 'table %INSERT%'", slot).Scan(&got)
	if err != nil || got < want {
		w.violate("slot %s of database %s gives %d of %d rows on a copy: %v", slot, database, got, want, err)
	}
	w.report.proven(want, max(0, want-got))
	return fmt.Sprintf("%s owes %d", slot, want), nil
}
