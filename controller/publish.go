package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// publish shows the cycle's status and logs and records what changed.
func (c *Controller) publish(ctx context.Context, seen plan.Observation, todo plan.Plan, verdicts []plan.Verdict, conditions []plan.Condition) {
	conditions = c.withSpace(conditions)
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
	now.Conditions = append(now.Conditions, c.notRecorded(c.record(recording, now))...)
	before := c.shown.Swap(&now)
	c.logTransitions(before, now)
}

// notRecorded tells of a ledger that could not be written. An etcd that is over its
// quota goes on renewing leases, so that it may last.
func (c *Controller) notRecorded(err error) []status.Finding {
	if err == nil || !c.term.Valid(c.deps.Now()) {
		c.unwritten = time.Time{}
		return nil
	}
	if c.unwritten.IsZero() {
		c.unwritten = c.deps.Now()
	}
	return []status.Finding{{
		Code: CodeLedgerUnwritten, Severity: plan.Warning, Since: c.unwritten,
		Message: fmt.Sprintf("the ledger could not be written, mirrors are kept all the same: %v", err),
		Hint: "A promotion gate and the next leader know only what was written before. Look at etcd: " +
			"whether it has raised an alarm (etcdctl alarm list), its log, and what slotkeeper's user may write.",
	}}
}

// recordLast writes how far consumers are as the term ends, however short ago that
// was written last: who comes next may be a promotion gate.
func (c *Controller) recordLast() {
	defer func() {
		if p := recover(); p != nil {
			_ = caught(c.deps.Logger, "writing the ledger at the end", p) // it logs; the leadership is to be given back all the same
		}
	}()
	shown := c.shown.Load()
	if shown == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), recordWithin)
	defer cancel()
	c.ledger.placedAt, c.ledger.movedAt = time.Time{}, time.Time{}
	last := *shown
	last.Conditions = lasting(last.Conditions)
	if err := c.record(ctx, last); err != nil {
		c.deps.Logger.Warn("writing the ledger at the end, positions in it are older", "error", err)
	}
}

// lasting leaves out what a ledger that is being written cannot say of itself.
func lasting(conditions []status.Finding) []status.Finding {
	return slices.DeleteFunc(slices.Clone(conditions), func(f status.Finding) bool {
		return f.Code == CodeLedgerUnwritten || f.Code == codeCycleFailed
	})
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
			c.deps.Alive(false) // not sooner: who leads next is its own news
		}
	}
}

func (c *Controller) showLedger(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			c.showUnreachable(caught(c.deps.Logger, "reading the ledger", p))
		}
	}()
	parts, err := c.load(ctx)
	if err != nil {
		c.showUnreachable(err)
		return
	}
	if len(parts) == 0 {
		return
	}
	s, err := status.FromLedger(parts)
	if err != nil {
		c.showUnread(err)
		return
	}
	c.shown.Store(&s)
}

// disown: what was shown last is nobody's any more, and grows old.
func (c *Controller) disown() {
	if s, ok := c.Status(); ok {
		s.Leader, s.Complete = status.Leader{}, false
		c.shown.Store(&s)
	}
}

// showUnread is for a ledger that there is and that cannot be read.
func (c *Controller) showUnread(err error) {
	trouble := status.Finding{
		Code: CodeLedgerUnreadable, Severity: plan.Critical,
		Message: fmt.Sprintf("the ledger cannot be read: %v", err),
		Hint:    "Mirrors stay as they are. Where the ledger is lost for good, delete the keys below its prefix: a controller that leads writes it anew.",
	}
	var newer *status.NewerError
	if errors.As(err, &newer) {
		trouble.Code = CodeLedgerNewer
		trouble.Message = fmt.Sprintf("a newer slotkeeper wrote the ledger, and this one neither writes nor leads: %v", err)
		trouble.Hint = "Run the newer program. Mirrors stay as they are meanwhile."
	}
	c.disown()
	c.showTrouble(trouble)
}

// showUnreachable: without etcd nobody may write, and mirrors stay as they are.
func (c *Controller) showUnreachable(err error) {
	c.disown()
	c.showTrouble(status.Finding{
		Code: plan.CondEtcdUnreachable, Severity: plan.Critical,
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
