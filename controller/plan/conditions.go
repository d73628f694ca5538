package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

const (
	// eventFor is how long a condition about something that has happened stays.
	eventFor = 5 * time.Minute
	// lagWorthSaying: one WAL segment.
	lagWorthSaying = 16 << 20
	// A restart_lsn that stands so long while so much is confirmed beyond it is
	// held by a long transaction.
	stuckAfter = 5 * time.Minute
	stuckBytes = 64 << 20
)

func (c *cycle) condition(cond Condition) { c.pl.Conditions = append(c.pl.Conditions, cond) }

// conditions looks for what deserves a look beside the verdicts.
func (c *cycle) conditions() {
	c.holdConditions()
	c.memberConditions()
	c.syncConditions()
	c.failoverConditions()
	c.gateConditions()
	c.idleConditions()
	c.managerConditions()
	c.droppedByPatroni()
	c.vanishedMirrors()
	ahead := c.mirrorsAhead()
	for _, t := range c.slots {
		c.slotConditions(t, ahead[t])
	}
	for _, name := range slices.Sorted(maps.Keys(c.m.Slots)) {
		note := c.m.Slots[name]
		if note.LostWith == c.m.Timeline && note.AbsentReads > 0 {
			c.condition(Condition{Code: CondSlotMissing, Subject: name, Severity: Critical,
				Message: fmt.Sprintf("slot %s did not come through the promotion to %s (timeline %d): it was last seen at %s", name, c.lead.primary, c.m.Timeline, lastText(note)),
				Hint:    "it is never made again at the current position: its consumer must know that rows are missing, and start anew"})
		}
	}
}

func (c *cycle) holdConditions() {
	if c.hold.broken() && len(c.slots) > 0 && c.m.HoldGen > 0 {
		c.condition(Condition{Code: CondHoldMissing, Subject: c.lead.primary, Severity: Critical,
			Message: fmt.Sprintf("the hold on %s protects nothing: %s", c.lead.primary, c.hold.why),
			Hint:    "it is made again by itself; find out who dropped or used " + cluster.HoldName})
	}
	for _, name := range slices.Sorted(maps.Keys(c.m.Standbys)) {
		note := c.m.Standbys[name]
		if note.AwaySince.IsZero() || !c.holdsBack(note) {
			continue
		}
		away := c.now.Sub(note.AwaySince).Round(time.Second)
		switch {
		case note.GivenUp:
			c.condition(Condition{Code: CondHoldAge, Subject: name, Severity: Warning,
				Message: fmt.Sprintf("%s has been away for %s and is given up: the holds no longer wait for it", name, away),
				Hint:    "its mirrors are made anew when it comes back"})
		case away >= c.p.MaxHoldAge/2:
			c.condition(Condition{Code: CondHoldAge, Subject: name, Severity: Warning,
				Message: fmt.Sprintf("%s has been away for %s and keeps the holds back: dead catalog rows stay in all databases", name, away),
				Hint:    fmt.Sprintf("bring it back; it is given up when it has been away for %s (protection.max_hold_age)", c.p.MaxHoldAge)})
		}
	}
}

func (c *cycle) memberConditions() {
	if c.foreignFence(c.lead.read.Node) {
		c.foreign(c.lead.primary, c.lead.read.Node)
	}
	for _, name := range c.standbys {
		read, ok := c.readable(name)
		if !ok {
			continue
		}
		if c.foreignFence(read.Node) {
			c.foreign(name, read.Node)
		}
		if !read.Node.Feedback {
			c.condition(Condition{Code: CondFeedbackOff, Subject: name, Severity: Warning,
				Message: fmt.Sprintf("hot_standby_feedback is off on %s", name),
				Hint:    "slots are safe without it (the hold protects them); queries on the standby may be cancelled"})
		}
		c.physicalSlot(name, read.Node.PrimarySlotName)
		c.unselected(name, read.Slots)
	}
}

func (c *cycle) foreign(name string, n cluster.Node) {
	c.condition(Condition{Code: CondForeignEpoch, Subject: name, Severity: Critical,
		Message: sentence(fmt.Sprintf("%s refuses this controller", name), c.fenceTrouble(n)),
		Hint:    foreignHint})
}

// foreignHint: the fence outlives its etcd, a data_dir that was removed included.
const foreignHint = "another slotkeeper, or one with another etcd, manages this node: stop it, or uninstall it; " +
	"only where that etcd is gone for good and nobody leads by it any more, take the fence away: SELECT slotkeeper.remove_fence(fence) FROM slotkeeper.node() on this node"

// unselected tells of mirrors that nothing moves any more and that keep WAL on
// their standby and catalog rows everywhere: those of slots that the
// configuration once selected. They are not dropped: it may be a slip.
func (c *cycle) unselected(node string, slots []cluster.Slot) {
	var names []string
	for _, s := range slots {
		if of := c.slotOn(c.lead.primary, s.Name); c.isMirror(s) && of != nil && !c.p.Selected(*of) {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	shown := strings.Join(names[:min(len(names), 5)], ", ")
	if more := len(names) - 5; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	c.condition(Condition{Code: CondMirrorUnselected, Subject: node, Severity: Warning,
		Message: fmt.Sprintf("%s has mirrors of slots that slots.include and slots.exclude do not select: %s; they are not moved any more, and keep WAL there and catalog rows on every node", node, shown),
		Hint:    fmt.Sprintf("select them again, or drop them on %s with pg_drop_replication_slot", node)})
}

// physicalSlot looks at the slot through which a standby streams: never ours to touch.
func (c *cycle) physicalSlot(standby, slot string) {
	if slot == "" {
		return
	}
	s := c.slotOn(c.lead.primary, slot)
	switch {
	case s == nil:
		c.condition(Condition{Code: CondPhysicalSlotMissing, Subject: standby, Severity: Warning,
			Message: fmt.Sprintf("the primary %s has no physical slot %s, which primary_slot_name of %s names", c.lead.primary, slot, standby),
			Hint:    "create it, or the standby cannot stream"})
	case s.Invalidated != "":
		c.condition(Condition{Code: CondPhysicalSlotInvalidated, Subject: standby, Severity: Warning,
			Message: fmt.Sprintf("the physical slot %s of %s on the primary %s is invalidated (%s)", slot, standby, c.lead.primary, s.Invalidated),
			Hint:    "the standby streams only while the WAL is still there by chance; make the slot anew"})
	}
}

// mirrorsAhead are the slots that some mirror has passed.
func (c *cycle) mirrorsAhead() map[*tracked]bool {
	ahead := map[*tracked]bool{}
	for _, pr := range c.pairs {
		if pr.mirror != nil && pr.t.located && pr.t.pos.Confirmed < pr.mirror.Confirmed.Or(0) && !c.replaces(pr) {
			ahead[pr.t] = true
		}
	}
	return ahead
}

func (c *cycle) slotConditions(t *tracked, mirrorAhead bool) {
	if t.held || mirrorAhead {
		c.condition(Condition{Code: CondPrimaryBehindMirror, Subject: t.slot.Name, Severity: Info,
			Message: fmt.Sprintf("%s is at %s on %s, less than it was (%s) or than a mirror is", t.slot.Name, t.pos.Confirmed, c.lead.primary, max(t.note.HighestF, t.note.Before)),
			Hint:    "mirrors wait; it clears itself when the consumer confirms again"})
	}
	stands := c.now.Sub(t.note.RestartSince)
	if t.located && !t.note.RestartSince.IsZero() && stands >= stuckAfter && t.pos.Confirmed-t.pos.Restart >= stuckBytes {
		c.condition(Condition{Code: CondRestartStuck, Subject: t.slot.Name, Severity: Warning,
			Message: fmt.Sprintf("restart_lsn of %s has stood at %s for %s while %d bytes were confirmed beyond it", t.slot.Name, t.pos.Restart, stands.Round(time.Second), uint64(t.pos.Confirmed-t.pos.Restart)),
			Hint:    "a long transaction keeps it; look at xact_start in pg_stat_activity and at pg_prepared_xacts"})
	}
}

// lagging looks at what a pair's verdict is at the end of the cycle: what this
// cycle has caught up with is no lag.
func lagging(v Verdict) (Condition, bool) {
	lag := v.LagBytes
	return Condition{Code: CondLag, Subject: v.Slot + "/" + v.Standby, Severity: Info,
		Message: fmt.Sprintf("the mirror of %s on %s is %d bytes behind", v.Slot, v.Standby, lag.V),
		Hint:    "after a failover the consumer would receive these again; look at the standby's replay",
	}, v.State == Safe && lag.OK && lag.V >= lagWorthSaying
}

func conditionKey(c Condition) string { return c.Code + " " + c.Subject }

// dateConditions says since when each stands, and keeps those about something
// that has happened for a while.
func (c *cycle) dateConditions() {
	c.pl.Conditions = dated(c.now, c.pl.Conditions, c.m.Conditions)
}

func dated(now time.Time, conds []Condition, before map[string]Condition) []Condition {
	seen := map[string]bool{}
	var out []Condition
	for _, cond := range conds {
		if old, ok := before[conditionKey(cond)]; ok && cond.Since.IsZero() {
			cond.Since = old.Since
		}
		if cond.Since.IsZero() {
			cond.Since = now
		}
		if !seen[conditionKey(cond)] {
			out = append(out, cond)
		}
		seen[conditionKey(cond)] = true
	}
	for key, old := range before {
		if isEvent(old.Code) && !seen[key] && now.Sub(old.Since) < eventFor {
			out = append(out, old)
		}
	}
	slices.SortFunc(out, func(a, b Condition) int { return compareStrings(conditionKey(a), conditionKey(b)) })
	return out
}

func isEvent(code string) bool {
	return code == CondSlotRecreated || code == CondMirrorReplaced || code == CondMirrorVanished
}

// finishConditions adds what only the outcomes show.
func (s *settling) finishConditions(o Observation, verdicts []Verdict) []Condition {
	conds := append([]Condition(nil), s.pl.Conditions...)
	for _, step := range s.pl.Steps {
		for _, row := range s.outs[step.ID].Outcomes {
			conds = append(conds, outcomeConditions(step, row)...)
		}
	}
	for _, v := range verdicts {
		if cond, ok := lagging(v); ok && s.pl.pairs != nil {
			conds = append(conds, cond)
		}
	}
	if cond, ok := noCandidate(verdicts, s.pl.slots); ok {
		conds = append(conds, cond)
	}
	for i := range conds {
		s.mended(&conds[i])
	}
	conds = dated(s.now, conds, s.m.Conditions)
	s.m.Conditions = map[string]Condition{}
	for _, cond := range conds {
		s.m.Conditions[conditionKey(cond)] = cond
	}
	return conds
}

// mended puts into the past what this cycle has put right: the verdicts beside
// it, of the same cycle, already say so.
func (s *settling) mended(cond *Condition) {
	if cond.Code != CondHoldMissing || s.m.HoldGen != s.m.Generation || s.gap {
		return
	}
	cond.Severity = Warning
	cond.Message = strings.Replace(cond.Message, "protects nothing", "protected nothing, and has been made again", 1)
	cond.Hint = "find out who dropped or used " + cluster.HoldName
}

func outcomeConditions(step Step, row cluster.Outcome) []Condition {
	switch {
	case step.Kind == StepFailover && row.Code != cluster.CodeSet:
		return []Condition{failoverPending(row.Name, step.Node, row.Detail, row.Hint)}
	case step.Kind == StepGate && row.Code != cluster.CodeSet:
		return []Condition{gateRefused(step, row)}
	case step.Kind == StepApply && row.Code == cluster.CodeReplaced:
		return []Condition{{Code: CondMirrorReplaced, Subject: row.Name + "/" + step.Node, Severity: Info,
			Message: fmt.Sprintf("the mirror of %s on %s was replaced: it was of an earlier incarnation or timeline, or of before two-phase was turned on or off", row.Name, step.Node)}}
	case row.Code == cluster.CodeForeignEpoch:
		return []Condition{{Code: CondForeignEpoch, Subject: step.Node, Severity: Critical,
			Message: sentence(fmt.Sprintf("%s refuses this controller", step.Node), row.Detail),
			Hint:    foreignHint}}
	}
	return nil
}

// noCandidate: there are slots, and no standby has all of them SAFE.
func noCandidate(verdicts []Verdict, slots int) (Condition, bool) {
	bad := map[string]bool{}
	for _, v := range verdicts {
		bad[v.Standby] = bad[v.Standby] || v.State != Safe
	}
	for _, b := range bad {
		if !b {
			return Condition{}, false
		}
	}
	if len(bad) == 0 && slots == 0 {
		return Condition{}, false
	}
	return Condition{Code: CondNoSafeCandidate, Severity: Critical,
		Message: fmt.Sprintf("none of %d standbys has all slots SAFE: a failover now would lose one", len(bad)),
		Hint:    "look at each pair's reason"}, true
}
