package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// claims is what the controllers say of themselves and of the slots: what is to be
// held against what is so.
type claims struct {
	w      *world
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu     sync.Mutex
	last   status.Status            // of a leader that saw a primary, the one whose observation began last
	leads  map[cluster.Epoch]string // who led in each epoch
	begun  map[cluster.Epoch]time.Time
	newest cluster.Epoch
	quiet  time.Time // when the last thing was done that takes away what was claimed
	seen   int
}

func watchClaims(w *world) *claims {
	ctx, cancel := context.WithCancel(w.ctx)
	c := &claims{w: w, cancel: cancel, leads: map[cluster.Epoch]string{}, begun: map[cluster.Epoch]time.Time{}}
	for _, d := range w.daemons {
		c.group.Go(func() {
			for ctx.Err() == nil {
				bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
				if doc, err := d.status(bounded); err == nil {
					c.note(d.name, doc)
				}
				cancel()
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	return c
}

func (c *claims) stop() {
	c.cancel()
	c.group.Wait()
}

// note keeps a leader's document. A stale leader may finish the cycle in which it
// was stopped; to begin one after its successor has is to lead beside it.
func (c *claims) note(name string, doc status.Status) {
	if doc.Source != "daemon" || doc.Leader.Name != name || doc.Leader.Epoch == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen++
	epoch := doc.Leader.Epoch
	if who, known := c.leads[epoch]; known && who != name {
		c.w.violate("%s and %s both lead in epoch %d", who, name, epoch)
	}
	c.leads[epoch] = name
	if began, known := c.begun[epoch]; !known || doc.ObservedAt.Before(began) {
		c.begun[epoch] = doc.ObservedAt
	}
	c.newest = max(c.newest, epoch)
	if epoch < c.newest && doc.ObservedAt.After(c.begun[c.newest].Add(leaseTTL)) {
		c.w.violate("%s of epoch %d began a cycle at %s, and epoch %d (%s) had begun at %s", name, epoch,
			doc.ObservedAt.Format(time.StampMilli), c.newest, c.leads[c.newest], c.begun[c.newest].Format(time.StampMilli))
	}
	// Where no primary answers the mirrors stay, and so does what was said of them.
	if epoch == c.newest && doc.ObservedAt.After(c.last.ObservedAt) && doc.Primary != nil {
		c.last = doc
	}
}

// withdraw says that something is done now after which no earlier claim counts.
func (c *claims) withdraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quiet = time.Now()
}

// current is the last document, false where it is older than what withdrew it.
func (c *claims) current() (status.Status, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.w.primary.Load()
	if c.last.Primary == nil {
		return c.last, false
	}
	return c.last, c.last.ObservedAt.After(c.quiet) && p != nil && c.last.Primary.Node == p.Name()
}

// wait gives a document that counts, if one comes soon: nobody may lead now.
func (c *claims) wait(within time.Duration) (status.Status, bool) {
	for end := time.Now().Add(within); ; {
		doc, ok := c.current()
		if ok || time.Now().After(end) || c.w.ctx.Err() != nil {
			return doc, ok
		}
		c.w.sleep(20 * time.Millisecond)
	}
}

// safe are the slots that a document calls SAFE on a node.
func safe(doc status.Status, on *lab.Node) map[string]status.Standby {
	found := map[string]status.Standby{}
	for _, s := range doc.Slots {
		for _, p := range s.Standbys {
			if p.Node == on.Name() && p.Verdict == plan.Safe {
				found[s.Name] = p
			}
		}
	}
	return found
}

// unsafe finds the first pair that is not SAFE, and says what it is; "" for none.
func unsafe(doc status.Status, slots []string, standbys []*lab.Node) (slot string, on *lab.Node, why string) {
	for _, slot := range slots {
		for _, n := range standbys {
			if v := verdict(doc, slot, n); v.Verdict != plan.Safe {
				return slot, n, fmt.Sprintf("slot %s on %s is %q %s: %s", slot, n.Name(), v.Verdict, v.Reason, v.Message)
			}
		}
	}
	return "", nil, ""
}

func verdict(doc status.Status, slot string, on *lab.Node) status.Standby {
	for _, s := range doc.Slots {
		for _, p := range s.Standbys {
			if s.Name == slot && p.Node == on.Name() {
				return p
			}
		}
	}
	return status.Standby{}
}
