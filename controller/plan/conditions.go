package plan

import (
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// eventFor is how long a condition about something that has happened stays.
const eventFor = 5 * time.Minute

func (c *cycle) condition(cond Condition) { c.pl.Conditions = append(c.pl.Conditions, cond) }

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
func (s *settling) finishConditions(verdicts []Verdict) []Condition {
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

// outcomeConditions is what one row of a step's outcome says.
func outcomeConditions(step Step, row cluster.Outcome) []Condition {
	switch {
	case step.Kind == StepFailover && row.Code != cluster.CodeSet:
		return []Condition{failoverPending(row.Name, step.Node, row.Detail, row.Hint)}
	case step.Kind == StepGate && row.Code != cluster.CodeSet:
		return []Condition{gateRefused(step, row)}
	case step.Kind == StepApply && row.Code == cluster.CodeReplaced:
		return []Condition{mirrorReplaced(step.Node, row.Name)}
	case row.Code == cluster.CodeForeignEpoch:
		return []Condition{foreign(step.Node, row.Detail)}
	}
	return nil
}
