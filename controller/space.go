package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// The codes of conditions about the ledger.
const (
	CodeEtcdSpace        = "etcd_space"
	CodeLedgerNewer      = "ledger_newer" // a newer program wrote it
	CodeLedgerUnreadable = "ledger_unreadable"
	CodeLedgerUnwritten  = "ledger_unwritten" // etcd takes no writes, while the lease lives on
)

// spaceEvery is how often etcd is asked how full it is.
const spaceEvery = 30 * time.Second

// Space is how full an etcd is, in bytes. Quota 0: it does not say.
type Space struct{ Used, Quota int64 }

// From half of the quota on nothing is written that is not needed for safety:
// over its quota etcd takes no writes at all, and Patroni loses its leader key.
func (s Space) short() bool { return s.Quota > 0 && s.Used >= s.Quota/2 }

// near is said before that.
func (s Space) near() bool { return s.Quota > 0 && s.Used >= s.Quota/5*2 }

// watchSpace asks until ctx ends. A failure says nothing: the ledger's own
// writes tell of an etcd that does not answer.
func (c *Controller) watchSpace(ctx context.Context, term Term) {
	for {
		if s, err := c.askSpace(ctx, term); err == nil {
			c.space.Store(&s)
		}
		if !wait(ctx, spaceEvery) {
			return
		}
	}
}

func (c *Controller) askSpace(ctx context.Context, term Term) (s Space, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = caught(c.deps.Logger, "asking how full etcd is", p)
		}
	}()
	return term.Space(ctx)
}

func (c *Controller) etcdSpace() Space {
	if s := c.space.Load(); s != nil {
		return *s
	}
	return Space{}
}

// withSpace adds the condition etcd_space where there is one.
func (c *Controller) withSpace(conditions []plan.Condition) []plan.Condition {
	s := c.etcdSpace()
	if !s.near() {
		c.spaceSince = time.Time{}
		return conditions
	}
	if c.spaceSince.IsZero() {
		c.spaceSince = c.deps.Now()
	}
	cond := plan.Condition{Code: CodeEtcdSpace, Severity: plan.Warning, Since: c.spaceSince,
		Message: fmt.Sprintf("etcd has used %d of its quota of %d MB: at half of it slotkeeper writes its ledger no longer", s.Used>>20, s.Quota>>20),
		Hint:    "let etcd compact (auto-compaction-retention), defragment it, or raise quota-backend-bytes: over its quota it takes no writes, Patroni's neither"}
	if s.short() {
		cond.Severity = plan.Critical
		cond.Message = fmt.Sprintf("etcd has used %d of its quota of %d MB: slotkeeper's ledger is not written any more, mirrors are kept all the same", s.Used>>20, s.Quota>>20)
	}
	return append(conditions, cond)
}
