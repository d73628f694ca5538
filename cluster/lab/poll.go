package lab

import (
	"context"
	"fmt"
	"time"
)

// defaultPatience bounds every wait whose context has no deadline of its own.
const defaultPatience = 60 * time.Second

// poll asks a condition again and again until it holds, fails, or the context
// ends. What it waits for is named in the error.
func poll(ctx context.Context, every time.Duration, what string, condition func() (bool, error)) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultPatience)
		defer cancel()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		done, err := condition()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if done {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}
