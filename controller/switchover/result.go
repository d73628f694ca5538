package switchover

import (
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	OutcomeDone             Outcome = "done"
	OutcomeReady            Outcome = "ready"              // --dry-run: nothing speaks against it
	OutcomeDeclined         Outcome = "declined"           // nobody agreed
	OutcomeRefused          Outcome = "refused"            // before Patroni was asked
	OutcomeUnknown          Outcome = "unknown"            // too little is known to ask
	OutcomeNotCaughtUp      Outcome = "not_caught_up"      // in time; nothing was asked
	OutcomeRefusedByPatroni Outcome = "refused_by_patroni" // HTTP status 412
	OutcomePatroniError     Outcome = "patroni_error"      // it would not even look at the request
	OutcomeUnreachable      Outcome = "unreachable"        // the request did not reach Patroni
	OutcomeRefusedByGate    Outcome = "refused_by_gate"    // another than the candidate leads
	OutcomeInstead          Outcome = "instead"            // another than the candidate leads, and no gate was against it
	OutcomeNotDone          Outcome = "not_done"           // the old primary leads on
	OutcomeSlotsLost        Outcome = "slots_lost"         // handed over, and a slot is not there or not usable
	OutcomeRunning          Outcome = "running"            // not ended in time
)

// ExitCode is the command's.
func (o Outcome) ExitCode() int {
	switch o {
	case OutcomeDone, OutcomeReady:
		return 0
	case OutcomeRefused, OutcomeDeclined, OutcomeRefusedByPatroni, OutcomeRefusedByGate, OutcomeSlotsLost:
		return 3
	case OutcomeUnknown, OutcomeUnreachable:
		return 4
	case OutcomeNotCaughtUp, OutcomeRunning:
		return 6
	}
	return 1
}

// SchemaVersion is the version of the document's shape. Fields may be added within
// a version.
const SchemaVersion = 1

// Result is the document of a run that has ended.
type Result struct {
	SchemaVersion  int                           `json:"schema_version"`
	Scope          string                        `json:"scope"`
	Outcome        Outcome                       `json:"outcome"`
	Message        string                        `json:"message"`
	Hint           string                        `json:"hint"`
	From           string                        `json:"from"` // the old primary, "" where it is not known
	To             string                        `json:"to"`   // the candidate, "" where there is none
	Why            string                        `json:"why"`  // it was chosen
	Leader         string                        `json:"leader"`
	Resumed        bool                          `json:"resumed"` // it was asked for by a run before this one
	AskedAt        cluster.Opt[time.Time]        `json:"asked_at"`
	TimelineBefore cluster.Opt[cluster.Timeline] `json:"timeline_before"`
	TimelineAfter  cluster.Opt[cluster.Timeline] `json:"timeline_after"`
	Fork           cluster.Opt[cluster.LSN]      `json:"fork_lsn"`
	// Outage is from the last time that the old primary was seen to take writes to the
	// first that the new one was; absent where this run has not seen the latter.
	Outage     cluster.Opt[float64]    `json:"seconds_without_primary"`
	Patroni    cluster.Opt[Reply]      `json:"patroni"`
	Gate       []Answer                `json:"gate"`
	Slots      []SlotResult            `json:"slots"`
	Walsenders []Sender                `json:"walsenders"` // that had not confirmed everything when the old primary was last asked
	AskedLast  cluster.Opt[time.Time]  `json:"walsenders_at"`
	OldPrimary cluster.Opt[OldPrimary] `json:"old_primary"`
}

func result(o Outcome, text, hint string, p Policy, m Memory, f Facts) Result {
	res := Result{
		SchemaVersion: SchemaVersion, Outcome: o, Message: text, Hint: hint,
		From: f.Keys.Value.Leader.Or(""), To: m.Candidate, Why: m.Why, Leader: f.Keys.Value.Leader.Or(""),
		Gate: []Answer{}, Slots: []SlotResult{}, Walsenders: []Sender{},
	}
	r, under := record(f)
	if !under || m.next(p, r) {
		if p.To != "" {
			res.To = p.To
		}
		return res
	}
	res.From, res.To, res.Why = r.Leader, r.Candidate, r.Why
	res.Resumed, res.AskedAt, res.TimelineBefore = r.ID != m.ID, cluster.Some(r.At), cluster.Some(r.Timeline)
	res.Patroni = r.Answer
	if f.Request.Status != 0 {
		res.Patroni = cluster.Some(Reply{Status: f.Request.Status, Text: f.Request.Text})
	}
	res.Gate = append(res.Gate, r.since(f.Gate)...)
	if m.led == "" {
		res.blocked(m, f)
		return res
	}
	res.Leader = m.led
	res.TimelineAfter, res.Fork = cluster.Some(f.Nodes[m.led].Value.Node.Timeline), forkOf(r, m, f)
	if m.awaited && !m.LastWritable.IsZero() && m.FirstWritable.After(m.LastWritable) {
		res.Outage = cluster.Some(m.FirstWritable.Sub(m.LastWritable).Seconds())
	}
	res.Slots = judgeSlots(m, f)
	if m.led == r.Leader {
		return res
	}
	old := OldPrimary{Node: r.Leader, Role: "unknown"}
	if server := f.Nodes[r.Leader]; server.OK() {
		old.Role = "standby"
		if server.Value.writable() {
			old.Role = "primary"
		}
	}
	c := oldPrimaryBack(p, m, f)
	if old.Safe = c.done; !c.done {
		old.Text = c.text
	}
	if old.Role == "unknown" {
		res.blocked(m, f)
	}
	res.OldPrimary = cluster.Some(old)
	return res
}

// blocked tells who keeps the old primary from stopping, as long as it has not.
func (r *Result) blocked(m Memory, f Facts) {
	if old := f.Nodes[r.From]; len(m.Senders) > 0 && !old.OK() && !old.Value.Stopped {
		r.Walsenders, r.AskedLast = append(r.Walsenders, m.Senders...), cluster.Some(m.SendersAt)
		if r.Outcome == OutcomeRunning {
			r.Hint = fmt.Sprintf("have the consumer of walsender %d end, or end that process on the machine of %s; then %s", m.Senders[0].PID, r.From, r.Hint)
		}
	}
}

// success is the end of a run in which somebody was promoted.
func success(p Policy, m Memory, f Facts) Result {
	r, _ := record(f)
	refused := refusal(r, f)
	successor := f.Keys.Value.Successors[r.Timeline]
	res := result(OutcomeDone, fmt.Sprintf("%s has taken over from %s", r.Candidate, r.Leader), "", p, m, f)
	back := ""
	if m.led == r.Leader {
		back = " again"
	}
	switch {
	case m.led == r.Candidate:
	case refused != nil:
		res.Outcome = OutcomeRefusedByGate
		res.Message = fmt.Sprintf("%s was refused by its own gate, and %s leads%s: %s", r.Candidate, m.led, back, refused.Line)
		res.Hint = "slotkeeper status says what is not safe there"
	case successor == r.Candidate:
		res.Outcome = OutcomeInstead
		res.Message = fmt.Sprintf("%s had taken over from %s, and by now %s leads%s", r.Candidate, r.Leader, m.led, back)
	default:
		res.Outcome = OutcomeInstead
		res.Message = fmt.Sprintf("%s was not promoted: %s leads%s%s", r.Candidate, m.led, back, said(r, f))
		res.Hint = "Patroni's log on " + r.Candidate + " says why"
	}
	if res.Outcome != OutcomeDone {
		return res
	}
	var lost []string
	for _, s := range res.Slots {
		if !s.Usable {
			lost = append(lost, s.Name+": "+s.Problem)
		}
	}
	if len(lost) > 0 {
		res.Outcome, res.Message = OutcomeSlotsLost, res.Message+", and a consumer cannot go on at every slot: "+listed(lost)
		res.Hint = "have those consumers start anew from a copy"
	}
	return res
}
