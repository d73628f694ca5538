package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// stopWithin is the longest that a command may take to end after the first
// signal; what has not ended by then is left as it is.
const stopWithin = 5 * time.Second

// The annotation of a command that may take longer, because what it would leave
// is worse than the wait.
const stopAnnotation = "slotkeeper_stop_within"

// patience is how long the command of these arguments may take to end.
func patience(root *cobra.Command, args []string) time.Duration {
	cmd, _, err := root.Find(args)
	if err != nil {
		return stopWithin
	}
	within, err := time.ParseDuration(cmd.Annotations[stopAnnotation])
	if err != nil {
		return stopWithin
	}
	return within
}

const sameSignal = 200 * time.Millisecond

func drain(ch <-chan os.Signal) {
	for {
		select {
		case <-ch:
		default:
			return
		}
	}
}

// withSignals gives a context that ends at the first SIGINT or SIGTERM. A second
// one, or the time within, ends the process.
func withSignals(parent context.Context, stderr io.Writer, within time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-ch:
			cancel()
		case <-done:
			return
		}
		// timeout(1) and some shells send one signal twice, to the process and to
		// its group: what follows at once is not a second wish.
		select {
		case <-time.After(sameSignal):
			drain(ch)
		case <-done:
			return
		}
		select {
		case <-ch:
			fmt.Fprintln(stderr, "slotkeeper: second signal, ending at once")
		case <-time.After(within - sameSignal):
			fmt.Fprintf(stderr, "slotkeeper: not ended %s after the signal, ending at once\n", within)
		case <-done:
			return
		}
		os.Exit(exitError)
	}()
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		cancel()
	}
}
