package switchover

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Action is the one thing to do next.
type Action string

// The actions. After each the facts are gathered anew.
const (
	Wait    Action = "wait"
	Confirm Action = "confirm" // ask the operator
	Write   Action = "write"   // Decision.Record, where there is none yet
	Ask     Action = "ask"     // Patroni, once
	Note    Action = "note"    // Decision.Record, in place of the one that is there
	Verify  Action = "verify"  // the slots of Decision.Record on Decision.Leader
	Remove  Action = "remove"  // the record: nothing came of it; then begin anew
	End     Action = "end"     // with Decision.Result; where Decision.Drop, the record goes first
)

// Decision is what Next says.
type Decision struct {
	Step   string // the first step that is not done
	Action Action
	Text   string // for people: what is waited for, or what is asked
	Record Record
	Asks   Consent // of Confirm: what a yes is to
	Leader string
	Result Result
	Drop   bool
	ID     string // of the record that Remove and Drop are about
}

// Step is one part of a switchover. Check says from the facts whether it is done.
type Step struct {
	Name  string
	check func(p Policy, m Memory, f Facts) check
}

// Steps are gone through in this order, and each time from the first: what a step
// has done shows in the facts.
var Steps = []Step{
	{"preflight", preflight},
	{"confirm", confirmed},
	{"catch_up", caughtUp},
	{"record", recorded},
	{"ask", asked},
	{"handover", handedOver},
	{"slots", slotsThere},
	{"old_primary", oldPrimaryBack},
}

// check is the answer of one step.
type check struct {
	done    bool
	action  Action // where not done
	text    string
	outcome Outcome // of action End
	hint    string
	drop    bool
	unknown bool // a fact is missing: it may come
}

var doneCheck = check{done: true}

func waiting(format string, args ...any) check {
	return check{action: Wait, text: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) check {
	return check{action: Wait, text: fmt.Sprintf(format, args...), unknown: true, outcome: OutcomeUnknown}
}

func ending(o Outcome, hint, format string, args ...any) check {
	return check{action: End, outcome: o, hint: hint, text: fmt.Sprintf(format, args...)}
}

// Memory is what a run remembers from one look at the facts to the next.
type Memory struct {
	ID        string // of this run
	Begun     time.Time
	Candidate string
	Why       string               // it was chosen
	shown     cluster.Opt[Consent] // what preflight first found nothing against
	Before    map[string]Before
	others    map[string]map[string]cluster.Opt[cluster.Position] // per standby: its mirrors, as last seen
	Senders   []Sender
	SendersAt time.Time
	moved     map[int32]mark // per walsender: since when its position stands
	// LastWritable is when the old primary was last seen to take writes, FirstWritable
	// when a new one was first.
	LastWritable, FirstWritable             time.Time
	awaited                                 bool // this run has seen that there was no new one yet
	unknownSince, silentSince, droppedSince time.Time
	seen                                    cluster.Opt[Record] // the record that this run is about
	silentOf                                string              // the record that silentSince is about
	led                                     string              // who was seen to lead afterwards
	ledOn                                   cluster.Timeline
}

// Next decides. It gives back the memory for the next time.
func Next(p Policy, m Memory, f Facts) (Decision, Memory) {
	m, f = m.keep(f)
	m = m.observe(f).choose(p, f).mirrors(f).patience(f)
	for _, s := range Steps {
		c := s.check(p, m, f)
		if c.done {
			if _, under := record(f); !under && s.Name == "preflight" && !m.shown.OK {
				m.shown = cluster.Some(m.offer(f))
			}
			continue
		}
		d := Decision{Step: s.Name, Action: c.action, Text: c.text, Drop: c.drop, ID: m.seen.V.ID}
		over := f.Now.Sub(m.begun(f)) > p.Timeout
		switch {
		case c.unknown && s.Name == "preflight":
			// Afterwards something was asked, and only time ends the waiting for an answer.
			if m.unknownSince.IsZero() {
				m.unknownSince = f.Now
			}
			if over || f.Now.Sub(m.unknownSince) >= uncertain {
				d.Action, d.Result = End, result(OutcomeUnknown, c.text, c.hint, p, m, f)
			}
		case over && slices.Contains([]Action{Wait, Verify, Confirm, Write, Ask}, c.action):
			d = late(d, c, p, m, f)
		case c.action == End:
			d.Result = result(c.outcome, c.text, c.hint, p, m, f)
		case c.action == Confirm:
			d.Asks = m.offer(f)
		case c.action == Verify:
			d.Record = m.amended(p)
		case c.action == Write:
			d.Record = m.record(p, f)
		}
		if !c.unknown || s.Name != "preflight" {
			m.unknownSince = time.Time{}
		}
		if d.Action == Wait && m.stopped(f) {
			d.Action, d.Record = Note, m.amended(p)
		}
		d.Leader = m.led
		return d, m
	}
	return Decision{Step: "done", Action: End, Drop: true, ID: m.seen.V.ID, Leader: m.led, Result: success(p, m, f)}, m
}

// begun is when the run's time began: nobody is hurried to agree.
func (m Memory) begun(f Facts) time.Time {
	if f.Agreed.OK && f.Agreed.V.At.After(m.Begun) {
		return f.Agreed.V.At
	}
	return m.Begun
}

// late ends a run whose time is over. What was asked goes on without it, and nothing
// is asked any more.
func late(d Decision, c check, p Policy, m Memory, f Facts) Decision {
	d.Action = End
	outcome, hint := OutcomeRunning, "run the same command again: it goes on watching, and asks for nothing a second time"
	if _, under := record(f); !under || c.action == Ask {
		outcome, hint = OutcomeNotCaughtUp, "nothing was asked of Patroni; a longer --timeout waits longer"
		d.Drop = under // nobody else asks either
	}
	if c.unknown {
		outcome = c.outcome
	}
	switch r, _ := record(f); {
	case c.hint != "":
		hint += "; " + c.hint
	case d.Step == "old_primary" && f.Keys.OK() && !f.Keys.Value.has(r.Leader):
		// It may never come back, and must not stand in the way of the next switchover.
		d.Drop, hint = true, r.Leader+" is no member of Patroni's at present: it is not waited for any more"
	case d.Step == "old_primary":
		hint += "; --to with another name than " + m.led + " begins the next switchover without waiting"
	}
	text := fmt.Sprintf("not ended after %s: %s", p.Timeout, c.text)
	switch {
	case c.unknown:
	case outcome == OutcomeRunning:
		text = fmt.Sprintf("still running after %s: %s", p.Timeout, c.text)
	case c.action != Wait:
		text = fmt.Sprintf("%s were over before Patroni could be asked", p.Timeout)
	}
	d.Result = result(outcome, text, hint, p, m, f)
	return d
}

// keep holds on to the record once it was seen. Another run that watches the same
// switchover may take it away at the end, or etcd may not answer: this run is about
// that switchover and must never begin one more.
func (m Memory) keep(f Facts) (Memory, Facts) {
	now := f.Record.Value
	if f.Record.OK() && now.OK && (!m.seen.OK || m.seen.V.ID == now.V.ID) {
		m.seen = now
	}
	if m.seen.OK {
		f.Record = plan.Fact[cluster.Opt[Record]]{Value: m.seen, At: f.Now}
	}
	return m, f
}

// record is the switchover under way, this run's or that of one before.
func record(f Facts) (Record, bool) {
	if !f.Record.OK() || !f.Record.Value.OK {
		return Record{}, false
	}
	return f.Record.Value.V, true
}

// lsn is a position, 0 where there is none.
func lsn(o cluster.Opt[cluster.LSN]) cluster.LSN { return o.Or(0) }
