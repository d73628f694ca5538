package plan

import (
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

const (
	// A restart_lsn that stands so long while so much is confirmed beyond it is
	// held by a long transaction; it is a warning when it lasts.
	stuckAfter = 30 * time.Second
	stuckBytes = 64 << 20
	stuckLong  = 5 * time.Minute
)

// stuckRestarts: a long transaction keeps restart_lsn where it began. A decoder
// that restarts has to read all from there on, and the WAL is kept everywhere.
func (c *cycle) stuckRestarts() {
	for _, t := range c.slots {
		stands := c.now.Sub(t.note.RestartSince)
		if !t.located || t.note.RestartSince.IsZero() || stands < stuckAfter || t.pos.Confirmed-t.pos.Restart < stuckBytes {
			continue
		}
		severity := Info
		if stands >= stuckLong {
			severity = Warning
		}
		who, hint := c.stuckBy(t)
		c.condition(Condition{Code: CondRestartStuck, Subject: t.slot.Name, Severity: severity,
			Message: sentence(fmt.Sprintf("restart_lsn of %s has stood at %s for %s while %d bytes were confirmed beyond it",
				t.slot.Name, t.pos.Restart, stands.Round(time.Second), uint64(t.pos.Confirmed-t.pos.Restart)), who),
			Hint: hint})
	}
}

// stuckBy names the transaction that holds restart_lsn: the oldest open one,
// where the slot's catalog_xmin is its id. A slot's catalog_xmin becomes the oldest
// id that was running whenever the consumer confirms past a record of the running
// transactions (LogicalIncreaseXminForSlot in PostgreSQL's logical.c), so it is
// the id of whoever holds restart_lsn back; a younger transaction's it cannot be
// while something older is still to be confirmed. Clocks say nothing here:
// restart_lsn also stands while nobody writes.
func (c *cycle) stuckBy(t *tracked) (who, hint string) {
	n := c.lead.read.Node
	w := n.OldestWriter
	if !w.OK || t.slot.CatalogXmin != cluster.Some(w.V.XID) {
		return "", "no open transaction holds it: its consumer has not confirmed since the one that did has ended; look at the consumer"
	}
	since := fmt.Sprintf("transaction %s, %d transactions old, since %s", w.V.XID, w.V.XID.Age(n.NextXID), w.V.Started.UTC().Format(time.RFC3339))
	if w.V.PID == 0 {
		return fmt.Sprintf("prepared transaction %s holds it, %s", quoted(w.V.GID), since),
			fmt.Sprintf("end it on %s: COMMIT PREPARED %s, or ROLLBACK PREPARED", c.lead.primary, quoted(w.V.GID))
	}
	return fmt.Sprintf("process %d holds it, %s", w.V.PID, since),
		fmt.Sprintf("let it end, or end it on %s: SELECT pg_terminate_backend(%d)", c.lead.primary, w.V.PID)
}

// noteRestart remembers since when restart_lsn stands.
func (n *SlotNote) noteRestart(at time.Time, pos cluster.Position) {
	if !n.Last.OK || n.Last.V.Restart != pos.Restart || n.RestartSince.IsZero() {
		n.RestartSince = at
	}
}
