package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/slotkeeper/slotkeeper/controller"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// frontDoor answers HTTP requests before there is a loop: the listener is bound
// first of all, and etcd may be waited for.
type frontDoor struct {
	loop atomic.Pointer[controller.Controller]
}

var errNotBegun = errors.New("the controller waits for etcd")

func newFrontDoor() *frontDoor { return &frontDoor{} }

func (f *frontDoor) open(c *controller.Controller) { f.loop.Store(c) }

func (f *frontDoor) Status() (status.Status, bool) {
	if c := f.loop.Load(); c != nil {
		return c.Status()
	}
	return status.Status{}, false
}

func (f *frontDoor) RequestSync(ctx context.Context) error {
	if c := f.loop.Load(); c != nil {
		return c.RequestSync(ctx)
	}
	return errNotBegun
}
