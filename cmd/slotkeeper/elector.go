package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/controller"
)

// elector gives the controller its leadership from etcd.
type elector struct {
	client *etcd.Client
	name   string
	http   string // where this controller's listener answers, "" for nowhere
	// takeOver has the first term begin with a new store: whatever was raised by
	// this etcd before, or by a copy of it, is then another's for certain.
	takeOver bool

	mu   sync.Mutex
	last *etcd.Term
}

// Campaign waits for leadership. The term outlives ctx, so that the controller
// can still give it back after ctx has ended; close ends it in any case.
func (e *elector) Campaign(ctx context.Context) (controller.Term, error) {
	if !e.takeOver {
		// Else each try to lead under a damaged id would cost etcd a few writes.
		if err := e.client.CheckStoreID(ctx); err != nil {
			return nil, err
		}
	}
	return e.campaign(ctx, e.client.Campaign)
}

// TryCampaign leads at once, or fails with an *etcd.NotLeaderError.
func (e *elector) TryCampaign(ctx context.Context) (*term, error) {
	return e.campaign(ctx, e.client.TryCampaign)
}

func (e *elector) campaign(ctx context.Context, run func(context.Context, string, string) (*etcd.Term, error)) (*term, error) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	follow := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	t, err := run(own, e.name, e.http)
	if err != nil {
		cancel(err)
		return nil, err
	}
	e.mu.Lock()
	e.last = t
	e.mu.Unlock()
	follow() // from here on the term's own end is what counts
	id, err := e.storeID(ctx, t)
	if err != nil {
		e.close()
		return nil, err
	}
	return &term{Term: t, client: e.client, ledger: e.client.Ledger(), store: id}, nil
}

func (e *elector) storeID(ctx context.Context, t *etcd.Term) (string, error) {
	if !e.takeOver {
		return e.client.StoreID(ctx)
	}
	id, err := e.client.RenewStore(ctx, t)
	e.takeOver = err != nil
	return id, err
}

// close gives back what is still led, within two seconds.
func (e *elector) close() {
	e.mu.Lock()
	t := e.last
	e.last = nil
	e.mu.Unlock()
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = t.Resign(ctx) // etcd forgets it after the lease's time to live where this fails
}

// Leader names who leads, "" where nobody does.
func (e *elector) Leader(ctx context.Context) (string, error) {
	holder, err := e.client.Leader(ctx)
	return holder.V.Name, err
}

// Load reads the ledger as a follower.
func (e *elector) Load(ctx context.Context) (map[string][]byte, error) {
	return loadLedger(ctx, e.client.Ledger())
}

func loadLedger(ctx context.Context, l *etcd.Ledger) (map[string][]byte, error) {
	parts, err := l.Load(ctx)
	if err != nil {
		return nil, err // it says what was read
	}
	values := make(map[string][]byte, len(parts))
	for name, part := range parts {
		values[name] = part.Value
	}
	return values, nil
}

// term is one leadership with its ledger.
type term struct {
	*etcd.Term
	client *etcd.Client
	ledger *etcd.Ledger
	store  string
}

func (t *term) Store() string { return t.store }

func (t *term) Load(ctx context.Context) (map[string][]byte, error) {
	return loadLedger(ctx, t.ledger)
}

func (t *term) Save(ctx context.Context, parts map[string][]byte) error {
	return t.ledger.Save(ctx, t.Term, parts)
}

func (t *term) Space(ctx context.Context) (controller.Space, error) {
	s, err := t.client.Space(ctx)
	return controller.Space(s), err
}

// bystander stands in for a term where nothing may be written: for `plan`.
type bystander struct {
	epoch cluster.Epoch
	store string
	parts map[string][]byte
	ctx   context.Context
}

func (b bystander) Epoch() cluster.Epoch                            { return b.epoch }
func (b bystander) Store() string                                   { return b.store }
func (b bystander) Valid(time.Time) bool                            { return false }
func (b bystander) Context() context.Context                        { return b.ctx }
func (b bystander) Load(context.Context) (map[string][]byte, error) { return b.parts, nil }
func (b bystander) Resign(context.Context) error                    { return nil }
func (b bystander) Space(context.Context) (controller.Space, error) {
	return controller.Space{}, nil
}
func (b bystander) Save(context.Context, map[string][]byte) error {
	return fmt.Errorf("writing the ledger: this command only looks")
}
