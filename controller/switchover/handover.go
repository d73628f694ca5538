package switchover

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// handedOver: has what was asked happened? Leader and timeline say so, by Patroni's
// key and by the server itself; Patroni's own answer never does.
func handedOver(p Policy, m Memory, f Facts) check {
	r, _ := record(f)
	if refused := hopeless(r, m, f); refused != nil {
		return *refused
	}
	if !f.Keys.OK() {
		return waiting("Patroni's keys cannot be read: %s", f.Keys.Err)
	}
	k := f.Keys.Value
	leader := k.Leader.Or("")
	server := f.Nodes[leader]
	switch n := server.Value.Node; {
	case leader == "":
		return waiting("nobody leads%s", afterGate(r, f))
	case !server.OK():
		return waiting("%s has the leader key, and its server does not answer: %s%s", leader, server.Err, blockers(leader == r.Leader, m, f))
	case n.SystemID != r.SystemID:
		c := ending(OutcomeNotDone, "run it again for a new one", "the switchover from %s to %s was of system %s, and %s is system %s: this is another cluster by now",
			r.Leader, r.Candidate, r.SystemID, leader, n.SystemID)
		c.drop = true
		return c
	case n.InRecovery:
		return waiting("%s has the leader key, and is not promoted yet%s", leader, afterGate(r, f))
	case n.Timeline > r.Timeline:
		return doneCheck
	case n.Timeline < r.Timeline || leader != r.Leader:
		c := waiting("%s has the leader key, and takes writes on timeline %d, and what was asked ends timeline %d", leader, n.Timeline, r.Timeline)
		c.hint = fmt.Sprintf("where that is never to come, %q gives it up", p.GiveUp)
		return c
	}
	return taken(p, r, m, f)
}

// preconditionFailed is Patroni's HTTP status for a switchover that is not possible.
const preconditionFailed = 412

// hopeless ends a run whose request surely did nothing: it did not reach Patroni,
// or Patroni refused it.
func hopeless(r Record, m Memory, f Facts) *check {
	q := f.Request
	if r.ID != m.ID || !q.Answered {
		return nil
	}
	outcome := OutcomeRefusedByPatroni
	switch {
	case q.Unsent:
		outcome = OutcomeUnreachable
	case q.Status == preconditionFailed:
	case q.Status >= 400 && q.Status < 500:
		outcome = OutcomePatroniError
	default:
		return nil
	}
	text := q.Text
	if q.Status != 0 {
		text = fmt.Sprintf("Patroni on %s answers with HTTP status %d: %s", r.Leader, q.Status, q.Text)
	}
	c := ending(outcome, q.Hint, "%s; nothing is changed", text)
	c.drop = true
	return &c
}

// taken: the old leader leads on, on the same timeline. Is the request still to
// come, taken up, or over?
func taken(p Policy, r Record, m Memory, f Facts) check {
	k := f.Keys.Value
	pending := r.ID == m.ID && f.Request.Made && !f.Request.Answered
	switch {
	case k.Failover.OK:
		return waiting("Patroni has taken the request up; %s is about to stop", r.Leader)
	case pending:
		return waiting("Patroni on %s has not answered yet", r.Leader)
	case k.Modified != r.Modified:
		if m.droppedSince.IsZero() || f.Now.Sub(m.droppedSince) < settle {
			return waiting("%s leads on", r.Leader)
		}
		c := ending(OutcomeNotDone, "Patroni's log on "+r.Leader+" says why", "Patroni dropped the request, and %s leads on%s", r.Leader, said(r, f))
		c.drop = true
		return c
	case m.silentSince.IsZero() || f.Now.Sub(m.silentSince) < quiet(k):
		c := waiting("Patroni shows nothing of the request yet%s", said(r, f))
		if p.Timeout <= quiet(k) {
			c.hint = fmt.Sprintf("with a --timeout longer than %s: as long it may still be taken up", quiet(k))
		}
		return c
	case r.ID == m.ID:
		c := ending(OutcomeNotDone, "Patroni's log on "+r.Leader+" says why", "Patroni did not take the request up, and %s leads on%s", r.Leader, said(r, f))
		c.drop = true
		return c
	}
	return check{action: Remove, text: fmt.Sprintf("the switchover from %s to %s, begun at %s, was never taken up by Patroni: beginning anew", r.Leader, r.Candidate, r.At.UTC().Format("15:04:05Z"))}
}

// patience notes since when there has been no sign of the request, or none any more.
func (m Memory) patience(f Facts) Memory {
	r, under := record(f)
	k := f.Keys.Value
	server := f.Nodes[r.Leader]
	if of := fmt.Sprint(r.ID, r.Asked); of != m.silentOf {
		m.silentOf, m.silentSince = of, time.Time{}
	}
	stands := under && f.Keys.OK() && k.Leader.Or("") == r.Leader && !k.Failover.OK &&
		server.OK() && server.Value.writable() && server.Value.Node.Timeline == r.Timeline
	m.silentSince = since(m.silentSince, stands && k.Modified == r.Modified, f.Now)
	m.droppedSince = since(m.droppedSince, stands && k.Modified != r.Modified, f.Now)
	return m
}

func since(t time.Time, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case t.IsZero():
		return now
	}
	return t
}

// said is what Patroni answered.
func said(r Record, f Facts) string {
	status, text := f.Request.Status, f.Request.Text
	if r.Answer.OK {
		status, text = r.Answer.V.Status, r.Answer.V.Text
	}
	switch {
	case status != 0:
		return fmt.Sprintf("; it answered %d: %s", status, text)
	case text != "":
		return "; it did not answer: " + text
	}
	return ""
}

// refusal is what the candidate's gate said against it, nil where it did not.
func refusal(r Record, f Facts) *Answer {
	for _, a := range slices.Backward(r.since(f.Gate)) {
		if a.Node == r.Candidate && !a.Allow {
			return &a
		}
	}
	return nil
}

func afterGate(r Record, f Facts) string {
	if a := refusal(r, f); a != nil {
		return fmt.Sprintf("; the gate of %s: %s", a.Node, a.Line)
	}
	return ""
}

// blockers names who keeps the old primary from stopping, as last seen.
func blockers(stopping bool, m Memory, f Facts) string {
	r, _ := record(f)
	if !stopping || len(m.Senders) == 0 || f.Nodes[r.Leader].Value.Stopped {
		return ""
	}
	names := make([]string, 0, len(m.Senders))
	for _, s := range m.Senders {
		names = append(names, s.String())
	}
	return fmt.Sprintf("; when it was last asked, %s ago, these had not confirmed everything, and a primary does not stop before they have: %s",
		f.Now.Sub(m.SendersAt).Round(time.Second), strings.Join(names, "; "))
}

func (s Sender) String() string {
	text := fmt.Sprintf("walsender %d", s.PID)
	if s.ApplicationName != "" {
		text += fmt.Sprintf(" (application_name %s)", s.ApplicationName)
	}
	client := s.Client
	if client == "" {
		client = "a local socket"
	}
	text += " from " + client
	if s.Slot != "" {
		text += ", slot " + s.Slot
	}
	if s.Behind.OK {
		return fmt.Sprintf("%s, %d bytes behind", text, s.Behind.V)
	}
	return text + ", nothing confirmed"
}
