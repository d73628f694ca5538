package controller

import (
	"context"
	"fmt"
)

// kick asks for a cycle begun from now on; done gets its error.
type kick struct{ done chan error }

// RequestSync has a cycle begun from now on and returns when it is over.
func (c *Controller) RequestSync(ctx context.Context) error {
	k := kick{done: make(chan error, 1)}
	select {
	case c.kicks <- k:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-k.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reload hands the loop a new configuration, taken before its next cycle.
func (c *Controller) Reload(cfg Config) {
	select {
	case <-c.reload:
	default:
	}
	c.reload <- cfg
}

func (c *Controller) drainKicks() []kick {
	var ks []kick
	for {
		select {
		case k := <-c.kicks:
			ks = append(ks, k)
		default:
			return ks
		}
	}
}

func answer(ks []kick, err error) {
	for _, k := range ks {
		k.done <- err
	}
}

// errNoLonger is the answer to a request for a cycle where no cycle follows.
var errNoLonger = fmt.Errorf("this controller does not lead")

// ErrNotLeading reports whether err says that a cycle was asked of a controller
// that does not lead.
func ErrNotLeading(err error) bool { return err == errNoLonger }
