package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slotkeeper/slotkeeper/controller"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// frontDoor answers HTTP requests before there is a loop: the listener is bound
// first of all, and etcd may be waited for.
type frontDoor struct {
	loop    atomic.Pointer[controller.Controller]
	waiting atomic.Pointer[status.Status]
}

var errNotBegun = errors.New("the controller waits for etcd")

func (f *frontDoor) open(c *controller.Controller) { f.loop.Store(c) }

// wait has the front door say why there is no loop yet.
func (f *frontDoor) wait(scope string, since time.Time, err error) {
	f.waiting.Store(&status.Status{
		SchemaVersion: status.SchemaVersion, Scope: scope, Source: "daemon",
		Members: []status.Member{}, Slots: []status.Slot{},
		Conditions: []status.Finding{{
			Code: "etcd_unreachable", Severity: plan.Critical, Since: since,
			Message: fmt.Sprintf("the controller has not begun: %v", err),
			Hint:    "Mirrors stay as they are and are not moved. Look at etcd and at the etcd section of the configuration.",
		}},
	})
}

func (f *frontDoor) Status() (status.Status, bool) {
	if c := f.loop.Load(); c != nil {
		return c.Status()
	}
	if s := f.waiting.Load(); s != nil {
		return *s, true
	}
	return status.Status{}, false
}

// Forget has the loop give a member up.
func (f *frontDoor) Forget(ctx context.Context, node string) error {
	if c := f.loop.Load(); c != nil {
		return c.Forget(ctx, node)
	}
	return errNotBegun
}

func (f *frontDoor) RequestSync(ctx context.Context) error {
	if c := f.loop.Load(); c != nil {
		return c.RequestSync(ctx)
	}
	return errNotBegun
}
