package controller

import "context"

// forgetting asks for a member to be given up; done gets why it is not.
type forgetting struct {
	node string
	done chan error
}

// Forget has the loop give a member up that is away, and returns when the cycle
// that does it is over. A *plan.NotForgettable says why it will not.
func (c *Controller) Forget(ctx context.Context, node string) error {
	f := forgetting{node: node, done: make(chan error, 1)}
	select {
	case c.forgets <- f:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-f.done:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.RequestSync(ctx)
}

// ForgetNow is the same for the goroutine that cycles: the next cycle does it.
func (c *Controller) ForgetNow(node string) error {
	if err := c.memory.Forgettable(node); err != nil {
		return err
	}
	c.memory.Forget(node)
	c.deps.Logger.Warn("a member is given up: the holds no longer wait for it", "node", node)
	return nil
}
