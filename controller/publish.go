package controller

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// publish shows the cycle's status and logs and records what changed.
func (c *Controller) publish(ctx context.Context, seen plan.Observation, todo plan.Plan, verdicts []plan.Verdict, conditions []plan.Condition) {
	now := status.Build(status.Inputs{
		Scope: c.cfg.Policy.Scope, Owner: c.cfg.Policy.Owner, Now: c.deps.Now(),
		Observation: seen, Plan: todo, Memory: c.memory, Verdicts: verdicts, Conditions: conditions,
	})
	// The ledger first: who has seen a slot SAFE in a status may rely on a successor,
	// and a promotion gate, that know of it. Also when the daemon is being stopped at
	// this moment: they have nothing else to know it from.
	within := recordWithin
	if end, ok := ctx.Deadline(); ok {
		within = max(within, time.Until(end))
	}
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(within, recordAtMost))
	defer cancel()
	err := c.record(recording, now)
	before := c.shown.Swap(&now)
	c.logTransitions(before, now)
	if err != nil {
		c.deps.Logger.Warn("writing the ledger, mirrors are kept all the same", "error", err)
	}
}

// recordLast writes how far consumers are as the term ends, however short ago that
// was written last: who comes next may be a promotion gate.
func (c *Controller) recordLast() {
	shown := c.shown.Load()
	if shown == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), recordWithin)
	defer cancel()
	c.ledger.positionsAt = time.Time{}
	if err := c.record(ctx, *shown); err != nil {
		c.deps.Logger.Warn("writing the ledger at the end, positions in it are older", "error", err)
	}
}

// The writing of one cycle's ledger has what is left of the cycle's time, and
// recordWithin beyond its end at most. With resigning it stays within the five
// seconds that SIGTERM may take.
const (
	recordWithin = 800 * time.Millisecond
	recordAtMost = 2 * time.Second
)

// logTransitions says at info what changed, per pair and per condition.
func (c *Controller) logTransitions(before *status.Status, now status.Status) {
	c.logMembers(before, now)
	old := map[plan.Pair]status.Standby{}
	had := map[string]bool{}
	if before != nil {
		for _, slot := range before.Slots {
			for _, p := range slot.Standbys {
				old[plan.Pair{Slot: slot.Name, Standby: p.Node}] = p
			}
		}
		for _, f := range before.Conditions {
			had[f.Code+"/"+f.Subject] = true
		}
	}
	for _, slot := range now.Slots {
		for _, p := range slot.Standbys {
			was := old[plan.Pair{Slot: slot.Name, Standby: p.Node}]
			if was.Verdict == p.Verdict && was.Reason == p.Reason {
				continue
			}
			c.deps.Logger.Info("verdict", withHint(p.Hint, "slot", slot.Name, "node", p.Node, "verdict", string(p.Verdict),
				"reason", string(p.Reason), "message", p.Message, "was", string(was.Verdict))...)
		}
	}
	for _, f := range now.Conditions {
		if !had[f.Code+"/"+f.Subject] {
			c.deps.Logger.Log(levelOf(f.Severity), "condition",
				withHint(f.Hint, "code", f.Code, "subject", f.Subject, "severity", string(f.Severity), "message", f.Message)...)
		}
		delete(had, f.Code+"/"+f.Subject)
	}
	for gone := range had {
		c.deps.Logger.Info("condition over", "condition", gone)
	}
}

// logMembers says why a member cannot be asked, and when it can be again: its
// slots' verdicts say only that it cannot, and without a primary nothing does.
func (c *Controller) logMembers(before *status.Status, now status.Status) {
	was := map[string]string{}
	if before != nil {
		for _, m := range before.Members {
			was[m.Node] = m.Error
		}
	}
	for _, m := range now.Members {
		switch {
		case (m.Error == "") == (was[m.Node] == ""):
		case m.Error != "":
			c.deps.Logger.Warn("member does not answer", withHint(m.Hint, "node", m.Node, "error", m.Error)...)
		default:
			c.deps.Logger.Info("member answers again", "node", m.Node, "role", m.Role)
		}
	}
}

// withHint: the log of a night is read where no command can be asked any more.
func withHint(hint string, fields ...any) []any {
	if hint == "" {
		return fields
	}
	return append(fields, "hint", hint)
}

func levelOf(s plan.Severity) hclog.Level {
	if s == plan.Info {
		return hclog.Info
	}
	return hclog.Warn
}

// positionsEvery is how often positions go to the ledger at most. Their age is
// shown wherever they are used.
const positionsEvery = 30 * time.Second

// ledger is what this term last wrote.
type ledger struct {
	written     map[string]string
	positionsAt time.Time
	identities  map[string]string // of the position parts as they were written
	encoded     status.Encoded
	generation  int64
	doubtful    bool // a write failed: whether it arrived is seen by reading first
}

func newLedger(parts map[string][]byte) ledger {
	l := ledger{written: map[string]string{}, identities: map[string]string{}}
	for name, text := range parts {
		l.written[name] = string(text)
	}
	return l
}

// record writes the parts whose text changed.
func (c *Controller) record(ctx context.Context, now status.Status) error {
	shown, err := c.ledger.encoded.Slots(now)
	if err != nil {
		return err
	}
	parts := map[string][]byte{}
	maps.Copy(parts, shown)
	if parts[status.PartCluster], err = status.ClusterPart(c.memory, now); err != nil {
		return err
	}
	identities, err := c.positionParts(parts)
	if err != nil {
		return err
	}
	for name, text := range parts {
		if err := c.save(ctx, name, text); err != nil {
			return err
		}
		c.ledger.identities[name] = string(identities[name])
	}
	return nil
}

// positionParts adds the parts of positions that are due, those of a slot that
// is new, gone or another one at once: a successor that does not know of a slot
// cannot say that it is missing. What holds no slot any more is emptied.
func (c *Controller) positionParts(parts map[string][]byte) (map[string][]byte, error) {
	at := c.deps.Now()
	identities, err := c.ledger.encoded.Identities(c.memory)
	if err != nil {
		return nil, err
	}
	due := at.Sub(c.ledger.positionsAt) >= positionsEvery
	wanted := map[string]bool{}
	for name, text := range identities {
		if due || c.ledger.identities[name] != string(text) {
			wanted[name] = true
		}
	}
	if len(wanted) > 0 {
		positions, err := status.PositionParts(c.memory, at, wanted)
		if err != nil {
			return nil, err
		}
		maps.Copy(parts, positions)
	}
	if due {
		c.ledger.positionsAt = at
	}
	for name := range c.ledger.written {
		_, shown := parts[name]
		_, placed := identities[name]
		if empty, ok := status.Emptied(name); ok && !shown && !placed {
			parts[name] = empty
		}
	}
	return identities, nil
}

// save writes one part unless it says what it said before.
func (c *Controller) save(ctx context.Context, name string, text []byte) error {
	if c.ledger.written[name] == string(text) {
		return nil
	}
	if c.ledger.doubtful {
		if _, err := c.term.Load(ctx); err != nil {
			return fmt.Errorf("reading the ledger again after a failed write: %w", err)
		}
		c.ledger.doubtful = false
	}
	if err := c.term.Save(ctx, name, text); err != nil {
		c.ledger.doubtful = true
		return fmt.Errorf("saving part %s: %w", name, err)
	}
	c.ledger.written[name] = string(text)
	return nil
}

// rememberFirst writes a new generation to the ledger before any server sees
// it: a successor that knew only the old one would take a hold that was gone
// for one that never was.
func (c *Controller) rememberFirst(ctx context.Context, mem plan.Memory) error {
	if mem.Generation == c.ledger.generation {
		return nil
	}
	last, _ := c.Status()
	last.Scope = c.cfg.Policy.Scope
	last.Leader = status.Leader{Name: c.cfg.Policy.Owner, Epoch: mem.Epoch}
	text, err := status.ClusterPart(mem, last)
	if err != nil {
		return err
	}
	if err := c.save(ctx, status.PartCluster, text); err != nil {
		return fmt.Errorf("recording generation %d before it is used: %w", mem.Generation, err)
	}
	c.ledger.generation = mem.Generation
	return nil
}

// follow shows the ledger's status while another controller leads.
func (c *Controller) follow(ctx context.Context) {
	for {
		c.showLedger(ctx)
		select {
		case k := <-c.kicks:
			k.done <- errNoLonger
		case f := <-c.forgets:
			f.done <- errNoLonger
		case <-ctx.Done():
			return
		case <-time.After(c.cfg.Interval):
		}
	}
}

func (c *Controller) showLedger(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			c.showUnreachable(caught(c.deps.Logger, "reading the ledger", p))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ReadTimeout)
	defer cancel()
	parts, err := c.deps.Elector.Load(ctx)
	if err != nil {
		c.showUnreachable(err)
		return
	}
	if len(parts) == 0 {
		return
	}
	s, err := status.FromLedger(parts)
	if err != nil {
		c.showUnreachable(err)
		return
	}
	c.shown.Store(&s)
}

// showUnreachable: without etcd nobody may write, and mirrors stay as they are.
func (c *Controller) showUnreachable(err error) {
	c.showTrouble(status.Finding{
		Code: "etcd_unreachable", Severity: plan.Critical,
		Message: fmt.Sprintf("no leadership can be had: %v", err),
		Hint:    "Mirrors stay as they are and are not moved. Look at etcd and at the etcd section of the configuration.",
	})
}

// showFailure is for a cycle that ended in an error: the status of the last good
// one stays, with its time, and says so.
func (c *Controller) showFailure(err error) {
	c.deps.Logger.Log(c.failureLevel(), "cycle failed", "error", err)
	c.showTrouble(status.Finding{
		Code: codeCycleFailed, Severity: plan.Critical,
		Message: fmt.Sprintf("the last cycle failed, and all here is from before it: %v", err),
		Hint:    "The next cycle tries again, and mirrors stay as they are meanwhile. Look at the controller's log if this stays.",
	})
}

// codeCycleFailed is the code of a condition; the next good cycle ends it.
const codeCycleFailed = "cycle_failed"

// failureLevel: the first failure is news, the next ones of a row are not.
func (c *Controller) failureLevel() hclog.Level {
	s, _ := c.Status()
	for _, f := range s.Conditions {
		if f.Code == codeCycleFailed {
			return hclog.Debug
		}
	}
	return hclog.Error
}

// showTrouble puts a condition of the controller itself into the status that is shown.
func (c *Controller) showTrouble(trouble status.Finding) {
	s, _ := c.Status()
	s.SchemaVersion = status.SchemaVersion
	s.Scope = c.cfg.Policy.Scope
	s.Complete = false
	conditions := make([]status.Finding, 0, len(s.Conditions)+1)
	trouble.Since = c.deps.Now()
	for _, f := range s.Conditions {
		if f.Code == trouble.Code {
			trouble.Since = f.Since
			continue
		}
		conditions = append(conditions, f)
	}
	s.Conditions = append(conditions, trouble)
	c.shown.Store(&s)
}
