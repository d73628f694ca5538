package plan

import (
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// settling is what one Settle works on.
type settling struct {
	now  time.Time
	p    Policy
	pl   Plan
	m    Memory
	outs map[string]StepOutcome
	sent map[Pair]*Step                         // the apply step that carries a pair's change
	rows map[string]map[string]*cluster.Outcome // per step and slot: its first row

	gap bool // the primary's hold was gone between the read and the call
}

// Settle turns what came of the plan's steps into the next memory, one verdict
// per pair and the conditions. A mirror that a change of this cycle has made,
// moved or found in order is SAFE in this cycle.
func Settle(now time.Time, p Policy, o Observation, pl Plan, outs []StepOutcome) (Memory, []Verdict, []Condition) {
	s := &settling{now: now, p: p.withDefaults(), pl: pl, m: pl.Memory.clone(), outs: map[string]StepOutcome{}}
	for _, out := range outs {
		s.outs[out.StepID] = out
	}
	s.indexSteps()
	for _, step := range pl.Steps {
		s.remember(step, s.outs[step.ID])
	}
	if pl.pairs == nil {
		s.keepPairs(pl.Verdicts)
		return s.m, pl.Verdicts, s.finishConditions(pl.Verdicts)
	}
	verdicts := make([]Verdict, 0, len(pl.pairs))
	pairs := map[Pair]PairNote{}
	for i := range pl.pairs {
		pr := &pl.pairs[i]
		note := s.pairNote(pr)
		verdicts = append(verdicts, note.Verdict)
		pairs[Pair{Slot: pr.t.slot.Name, Standby: pr.node}] = note
	}
	s.m.Pairs = pairs
	return s.m, verdicts, s.finishConditions(verdicts)
}

func (s *settling) keepPairs(verdicts []Verdict) {
	for _, v := range verdicts {
		key := Pair{Slot: v.Slot, Standby: v.Standby}
		note := s.m.Pairs[key]
		note.Verdict = v
		s.m.Pairs[key] = note
	}
}

// remember takes into memory what a step has done to a node.
func (s *settling) remember(step Step, out StepOutcome) {
	ran := out.StepID != "" && out.Skipped == ""
	clean := ran && out.Err == "" && allSucceeded(step, out)
	switch step.Kind {
	case StepFence:
		if clean {
			s.m.FencedAt[step.Node] = s.now
			s.m.TakenOver[step.Node] = s.m.TakenOver[step.Node] || step.Replaces.OK
		}
	case StepHold:
		if clean && step.OnPrimary {
			s.m.HoldGen = step.Generation
		}
		if clean && step.Stage == StageRaise && step.OnPrimary {
			s.m.RaisedAt = s.now
		}
		if ran && step.OnPrimary && step.Stage == StageLowerPrimary {
			s.noteHeld(step)
			s.lookForGap(step, out)
		}
		s.settleWALTouch(step, out)
	case StepFailover:
		s.settleFailover(step, out)
	case StepGate:
		s.m.GateAt[step.Node] = s.now
	case StepApply:
		if ran {
			s.countXmins(step)
		}
	}
}

// allSucceeded: a fence answers raised or same, which are no slot's codes.
func allSucceeded(step Step, out StepOutcome) bool {
	for _, row := range out.Outcomes {
		if step.Kind == StepFence && (row.Code == "raised" || row.Code == "same") {
			continue
		}
		if !succeeded(row.Code) {
			return false
		}
	}
	return true
}

// noteHeld: the hold has taken over, under one lock with its witness. The kept
// reads from there on are held, also when the slot moves on before the next read.
func (s *settling) noteHeld(step Step) {
	for _, want := range step.Wants {
		row := s.rows[step.ID][want.Slot]
		if want.Slot == "" || row == nil || row.Code != cluster.CodeHeld {
			continue
		}
		kept := append([]Kept(nil), s.m.Kept[want.Slot]...)
		for i := range kept {
			kept[i].HoldPinned = kept[i].HoldPinned || want.CatalogXmin.NotAfter(kept[i].Position.CatalogXmin) && kept[i].Source.Same(want.Source)
		}
		s.m.Kept[want.Slot] = kept
	}
}

// lookForGap: what the hold pinned at the read must still be pinned at the
// call. Where it is not, the hold was gone in between, and the one that the call
// has made proves nothing for the time before.
func (s *settling) lookForGap(step Step, out StepOutcome) {
	if len(step.Wants) == 0 || step.Wants[0].Slot != "" {
		return
	}
	for _, row := range out.Outcomes {
		if row.Name == cluster.HoldName && row.Code == cluster.CodeNotPinned {
			s.gap = true
		}
	}
	if !s.gap {
		return
	}
	s.m.HoldGen = s.m.Generation
	s.m.Generation++
	s.m.Continuous = s.m.Generation
	for slot, kept := range s.m.Kept {
		again := append([]Kept(nil), kept...)
		for i := range again {
			again[i].HoldPinned = false
		}
		s.m.Kept[slot] = again
	}
}

// countXmins counts what a call may have made, also one of which no answer
// came: the next raise must not pass it before the node is read again.
func (s *settling) countXmins(step Step) {
	note := s.m.Standbys[step.Node]
	for _, ch := range step.Changes {
		note.OldestXmin = cluster.OldestXID(note.OldestXmin, ch.Position.CatalogXmin).Or(0)
	}
	s.m.Standbys[step.Node] = note
}

// pairNote gives what is remembered of a pair after this cycle, its verdict included.
func (s *settling) pairNote(pr *pair) PairNote {
	note, v := pr.note, pr.verdict
	if pr.mirror != nil && pr.mirror.Marker != nil {
		note.Way = pr.mirror.Marker.Way
	}
	if pr.send {
		s.settleChange(pr, &note, &v)
	} else if pr.mirror != nil && v.State == Safe {
		note.Resume, note.Tried = "", Tried{}
	}
	s.settleTouch(pr, &note)
	if pr.stamp && pr.unstamped && v.State != Safe && s.stamped(pr) {
		s.makeSafe(pr, &note, &v, v.Mirror)
	}
	if s.gap && pr.mirror != nil && v.State == Safe {
		v.State, v.Reason = Unsafe, ReasonProtectionGap
		v.Message = fmt.Sprintf("the hold on the primary was gone for a moment: whether %s on %s is still protected is judged anew in the next cycle", v.Slot, v.Standby)
		v.Hint = "find out who dropped " + cluster.HoldName
	}
	v.Since = since(s.now, v, pr.note.Verdict)
	v.ProofAge = proofAge(s.now, note.ProvenAt)
	note.Verdict, note.Judged, note.Dropped = v, v, pr.drop != ""
	return note
}

// settleChange reads what came of the pair's change.
func (s *settling) settleChange(pr *pair, note *PairNote, v *Verdict) {
	step, row, trouble := s.rowOf(pr)
	if trouble != "" && s.outs[step.ID].Cut && s.outs[step.ID].Err == "" {
		return // its turn comes in the next cycle
	}
	if trouble != "" {
		note.Tried = s.untried(pr, step, trouble)
		if v.Reason == ReasonNew || v.State != Safe && !passing(note.Tried.Code) {
			s.overrule(v, refusal(v.Slot, v.Standby, note.Tried.Code, note.Tried.Message, note.Tried.Hint))
		}
		return
	}
	note.Resume = row.Resume
	if succeeded(row.Code) {
		note.Resume, note.Tried = "", Tried{}
		at := row.Mirror
		if !at.OK {
			at = cluster.Some(pr.change.Position)
		}
		if v.State == Safe || !pr.stamp || row.Code != cluster.CodeUnchanged || s.stamped(pr) {
			s.makeSafe(pr, note, v, at)
		}
		return
	}
	note.Tried = Tried{At: s.now, Position: pr.change.Position, Snapshot: pr.change.Snapshot.OK, Code: row.Code, Message: row.Detail, Hint: row.Hint}
	if row.Code == cluster.CodeWALMissing {
		note.Tried.Message = sentence("it needs WAL from "+pr.change.Position.Restart.String(), row.Detail)
	}
	if passing(row.Code) && v.Reason != ReasonNew {
		return
	}
	if v.State != Safe || withdraws(row.Code, pr.change, v.Mirror) {
		s.overrule(v, refusal(v.Slot, v.Standby, row.Code, note.Tried.Message, row.Hint))
	}
}

// rowOf finds the outcome of the pair's change, or says why there is none.
func (s *settling) rowOf(pr *pair) (Step, cluster.Outcome, string) {
	sent := s.sent[Pair{Slot: pr.t.slot.Name, Standby: pr.node}]
	if sent == nil {
		return Step{}, cluster.Outcome{}, "no step carries it"
	}
	step := *sent
	out, ok := s.outs[step.ID]
	if row := s.rows[step.ID][pr.t.slot.Name]; row != nil {
		return step, *row, "" // also where a later call of the step failed
	}
	switch {
	case !ok:
		return step, cluster.Outcome{}, "the step was not made"
	case out.Skipped != "":
		return step, cluster.Outcome{}, out.Skipped
	case out.Err != "":
		return step, cluster.Outcome{}, out.Err
	}
	return step, cluster.Outcome{}, "the call gave no answer for it"
}

// indexSteps lets each pair find its change and its row without a scan.
func (s *settling) indexSteps() {
	s.sent, s.rows = map[Pair]*Step{}, map[string]map[string]*cluster.Outcome{}
	for i := range s.pl.Steps {
		step := &s.pl.Steps[i]
		if step.Kind != StepApply {
			continue
		}
		for _, ch := range step.Changes {
			if key := (Pair{Slot: ch.Name, Standby: step.Node}); s.sent[key] == nil {
				s.sent[key] = step
			}
		}
	}
	for id, out := range s.outs {
		rows := make(map[string]*cluster.Outcome, len(out.Outcomes))
		for i := range out.Outcomes {
			if name := out.Outcomes[i].Name; rows[name] == nil {
				rows[name] = &out.Outcomes[i]
			}
		}
		s.rows[id] = rows
	}
}

// untried explains a change that was not tried: by the hold that refused it,
// where one did.
func (s *settling) untried(pr *pair, step Step, why string) Tried {
	t := Tried{At: s.now, Position: pr.change.Position, Snapshot: pr.change.Snapshot.OK, Code: cluster.CodeRetry, Message: why}
	for _, need := range step.Needs {
		for _, row := range s.outs[need].Outcomes {
			if (row.Name == pr.t.slot.Name || row.Name == cluster.HoldName) && !succeeded(row.Code) {
				t.Code, t.Message, t.Hint = row.Code, sentence("the hold on "+row.Node, row.Detail), row.Hint
				return t
			}
		}
	}
	return t
}

func (s *settling) stamped(pr *pair) bool {
	row := s.rows["stamp/"+pr.node][pr.t.slot.Name]
	return row != nil && succeeded(row.Code)
}

func (s *settling) makeSafe(pr *pair, note *PairNote, v *Verdict, at cluster.Opt[cluster.Position]) {
	note.ProvenAt = s.now
	v.State, v.Reason, v.Hint, v.Mirror = Safe, "", "", at
	v.LagBytes = lagBytes(pr.t, at)
	v.Message = safeMessage(pr.t, pr.node, cluster.Some(at.V.Confirmed))
}

func (s *settling) overrule(v *Verdict, f *finding) {
	v.State, v.Reason, v.Message, v.Hint = f.state, f.reason, f.message, f.hint
}
