package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
// the consumer confirmed.
func (w *world) prove(node *lab.Node, doc status.Status) (err error) {
	ctx, cancel := w.within(patience)
	defer cancel()
	w.report.copies++
	copied, err := w.lab.NewNode(fmt.Sprintf("copy%d", w.report.copies))
	if err != nil {
		return err
	}
	before := w.violated()
	defer func() {
		if w.violated() == before {
			err = errors.Join(err, w.lab.Remove(context.WithoutCancel(ctx), copied))
		} else {
			err = errors.Join(err, copied.StopImmediate(context.WithoutCancel(ctx))) // its folder is the evidence
		}
	}()
	if err := copied.CopyOf(ctx, node); err != nil {
		return err
	}
	confirmed := w.confirmed()
	if err := copied.Set(ctx, map[string]string{"autovacuum": "off"}); err != nil {
		return err
	}
	if err := copied.Start(ctx); err != nil {
		return fmt.Errorf("a copy of %s does not start: %w", node.Name(), err)
	}
	if err := copied.Promote(ctx); err != nil {
		return err
	}
	return w.decodeAll(ctx, copied, node, doc, confirmed)
}

func (w *world) violated() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.violations)
}

// confirmed is how far each consumer has told any server that it is.
func (w *world) confirmed() map[string]cluster.LSN {
	all := map[string]cluster.LSN{}
	for _, r := range w.readers {
		r.mu.Lock()
		if r.stream != nil {
			r.confirmed = max(r.confirmed, r.stream.Confirmed())
		}
		all[r.slot] = r.confirmed
		r.mu.Unlock()
	}
	return all
}

func (w *world) decodeAll(ctx context.Context, copied, node *lab.Node, doc status.Status, confirmed map[string]cluster.LSN) error {
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
		if ends != 0 && at > ends {
			w.violate("slot %s on %s is at %s, and its consumer has confirmed %s: what lies between is lost", slot, node.Name(), at, ends)
		}
		if databases[slot] != "postgres" {
			sum, err := w.decodeElsewhere(ctx, copied, databases[slot], slot)
			if err != nil {
				return err
			}
			sums = append(sums, sum)
			continue
		}
		sum, err := w.decode(ctx, copied, node, slot, at, owed.Since(at))
		if err != nil {
			return err
		}
		sums = append(sums, sum)
	}
	w.say("  copy of %s as of cycle %d: %s", node.Name(), doc.Cycle, strings.Join(sums, ", "))
	return nil
}

// decode streams a slot to its end, as its consumer would.
func (w *world) decode(ctx context.Context, copied, node *lab.Node, slot string, at cluster.LSN, truth lab.Truth) (string, error) {
	deliveries := lab.NewDeliveries()
	consumer := &lab.Consumer{Slot: slot, Deliveries: deliveries}
	stream, err := consumer.Start(ctx, copied)
	if err != nil {
		w.violate("slot %s, SAFE on %s, cannot be streamed from on a copy of it: %v", slot, node.Name(), err)
		return slot, nil
	}
	last, err := w.load.SentinelOn(ctx, copied)
	if err != nil {
		return slot, err
	}
	if err := deliveries.WaitRow(ctx, stream, last); err != nil {
		w.violate("slot %s, SAFE on %s, cannot be decoded on a copy of it: %v", slot, node.Name(), err)
	}
	if err := stream.Stop(); err != nil && !errors.Is(err, lab.ErrServerGone) {
		w.say("  the stream of %s on the copy: %v", slot, err)
	}
	a := deliveries.Account(slot, truth, lab.Bounds{Positions: map[int]cluster.LSN{stream.Number(): at}}, deliveries)
	w.report.decoded++
	w.report.owed += a.Committed + a.Messages
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
func (w *world) decodeElsewhere(ctx context.Context, copied *lab.Node, database, slot string) (string, error) {
	var want, got int
	if err := copied.DB(database).QueryRow(ctx, "SELECT count(*) FROM t").Scan(&want); err != nil {
		return slot, fmt.Errorf("reading database %s of a copy: %w", database, err)
	}
	err := copied.DB(database).QueryRow(ctx, "SELECT count(*) FROM pg_logical_slot_peek_changes($1, NULL, NULL) WHERE data LIKE 'table %INSERT%'", slot).Scan(&got)
	if err != nil || got < want {
		w.violate("slot %s of database %s gives %d of %d rows on a copy: %v", slot, database, got, want, err)
	}
	w.report.decoded++
	w.report.owed += want
	return fmt.Sprintf("%s owes %d", slot, want), nil
}
