package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/patroni"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
)

// promptly is how soon after the last look at its record a request must be made.
// What is held up for longer may be known to another run as never made.
const promptly = 5 * time.Second

func (l *lookout) agree(to switchover.Consent) {
	to.At = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Agreed = cluster.Some(to)
}

// write records what will be asked, where there is no record. That another run was
// faster shows in the facts.
func (l *lookout) write(ctx context.Context, r switchover.Record) error {
	text, err := r.Encode()
	if err == nil {
		_, err = l.store.client.PutSwitchover(ctx, text, 0)
	}
	if err == nil {
		err = l.readEtcd(ctx)
	}
	if err != nil {
		return exitf(exitUnknown, "%w\nPatroni was asked for nothing.", err)
	}
	return nil
}

// ask makes the one request. The record says so first, and that it was still this
// run's; it goes on in the background, as Patroni answers when all is over.
func (l *lookout) ask(ctx context.Context, id string) error {
	l.mu.Lock()
	r, revision := l.known.Record.Value.V, l.revision
	leader, ok := l.view.Member(r.Leader)
	l.mu.Unlock()
	begun := time.Now()
	mine := r.ID == id
	r.Asked = true
	text, err := r.Encode()
	if err != nil {
		return err
	}
	written := false
	if mine {
		written, err = l.store.client.PutSwitchover(ctx, text, revision)
	}
	if err == nil {
		err = l.readEtcd(ctx)
	}
	switch {
	case err != nil:
		return exitf(exitUnknown, "%w\nPatroni was asked for nothing.", err)
	case !written || time.Since(begun) > promptly:
		return exitf(exitError, "another run has taken this switchover over, or this one was held up: Patroni was not asked by it\nThe same command goes on from here.")
	}
	l.request(switchover.Request{Made: true})
	ctx, l.hangUp = context.WithCancel(ctx)
	l.work.Go(func() {
		q := switchover.Request{Made: true, Answered: true}
		if !ok {
			q.Unsent, q.Text = true, r.Leader+" is not a member any more"
		} else {
			q = answered(l.api.Switchover(ctx, leader, r.Leader, r.Candidate))
		}
		if ctx.Err() == nil {
			l.request(q)
			l.keep(ctx, q)
		}
	})
	return nil
}

func (l *lookout) request(q switchover.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Request = q
}

// answered sorts what came of a request.
func answered(text string, err error) switchover.Request {
	q := switchover.Request{Made: true, Answered: true, Status: http.StatusOK, Text: text}
	var refusal *patroni.RESTError
	var unsent *patroni.UnsentError
	switch {
	case err == nil:
	case errors.As(err, &refusal):
		q.Status, q.Text, q.Hint = refusal.Status, refusal.Text, refusal.Hint()
	default:
		q.Status, q.Text, q.Unsent = 0, oneLine(err.Error()), errors.As(err, &unsent)
	}
	return q
}

// keep adds Patroni's answer to the record, for a run after this one.
func (l *lookout) keep(ctx context.Context, q switchover.Request) {
	l.mu.Lock()
	r := l.known.Record.Value
	l.mu.Unlock()
	if r.OK && q.Status != 0 {
		r.V.Answer = cluster.Some(switchover.Reply{Status: q.Status, Text: q.Text})
		l.amend(ctx, r.V)
	}
}

// amend replaces the record by one that knows more. Where that fails, or somebody
// has amended it at the same moment, a run after this one knows less.
func (l *lookout) amend(ctx context.Context, r switchover.Record) {
	l.mu.Lock()
	now, revision := l.known.Record, l.revision
	l.mu.Unlock()
	if !now.OK() || !now.Value.OK || now.Value.V.ID != r.ID {
		return
	}
	if !r.Answer.OK {
		r.Answer = now.Value.V.Answer // it came meanwhile
	}
	if text, err := r.Encode(); err == nil {
		if _, err = l.store.client.PutSwitchover(ctx, text, revision); err == nil {
			_ = l.readEtcd(ctx) // it is in the facts
		}
	}
}

// remove takes the record away. Somebody else may have written it meanwhile: an
// answer of Patroni's was added.
func (l *lookout) remove(ctx context.Context, id string) error {
	for range 5 {
		if err := l.readEtcd(ctx); err != nil {
			return err
		}
		l.mu.Lock()
		now, revision := l.known.Record, l.revision
		l.mu.Unlock()
		if !now.Value.OK || now.Value.V.ID != id {
			break
		}
		if _, err := l.store.client.EndSwitchover(ctx, revision); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Request, l.known.Verified = switchover.Request{}, plan.Fact[switchover.Verified]{}
	return nil
}

// verify looks at every slot on the new primary.
func (l *lookout) verify(ctx context.Context, leader string, r switchover.Record) {
	l.mu.Lock()
	f, view := l.known, l.view
	l.mu.Unlock()
	names := switchover.Expected(r, f.Status.Value)
	found, err := l.find(ctx, view, leader, names)
	verified := plan.Fact[switchover.Verified]{Value: found, At: time.Now()}
	if err != nil {
		verified.Err = explain(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Verified = verified
}

func (l *lookout) find(ctx context.Context, view patroni.View, leader string, names []string) (switchover.Verified, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	all := roster{members: view.Topology().Members}
	m, err := all.member(leader)
	if err != nil {
		return switchover.Verified{}, fmt.Errorf("%s is not a member any more", leader)
	}
	p := &peer{member: m}
	if p.session, err = openSession(l.config, m); err != nil {
		return switchover.Verified{}, err
	}
	defer p.session.Close()
	if p.read, err = p.session.Read(ctx); err != nil {
		return switchover.Verified{}, err
	}
	found := switchover.Verified{Leader: leader, Timeline: p.read.Node.Timeline, Slots: []switchover.Found{}}
	for _, name := range names {
		at := slices.IndexFunc(p.read.Slots, func(s cluster.Slot) bool { return s.Name == name })
		if at < 0 {
			found.Slots = append(found.Slots, switchover.Found{Name: name, Problem: "it is not there"})
			continue
		}
		slot := p.read.Slots[at]
		v := verifySlot(ctx, p, slot)
		found.Slots = append(found.Slots, switchover.Found{
			Name: name, There: true, Usable: v.Usable, Unknown: v.unknown, Problem: v.Problem,
			Restart: v.Restart, Confirmed: v.Confirmed, Failover: slot.Failover,
		})
	}
	return found, nil
}
