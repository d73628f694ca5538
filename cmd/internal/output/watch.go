package output

import (
	"bytes"
	"context"
	"io"
	"time"
)

// clearScreen moves a terminal's cursor home and empties the screen.
const clearScreen = "\x1b[H\x1b[2J"

// screen collects what goes to a terminal, or to a file, at once.
type screen struct {
	bytes.Buffer
	terminal bool
}

// Watch calls once, now and then each interval, until ctx ends; on a terminal
// each result takes the place of the one before. What once has to complain of
// comes after the result, or the emptied screen would take it away. Watch gives
// the last error of once, and none for the end of ctx itself.
func Watch(ctx context.Context, stdout, stderr io.Writer, interval time.Duration, once func(ctx context.Context, stdout, stderr io.Writer) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		shown, complaints := screen{terminal: IsTerminal(stdout)}, bytes.Buffer{}
		if shown.terminal {
			shown.WriteString(clearScreen)
		}
		err := once(ctx, &shown, &complaints)
		if ctx.Err() != nil {
			return nil
		}
		if _, werr := stdout.Write(shown.Bytes()); werr != nil {
			return werr
		}
		if _, werr := stderr.Write(complaints.Bytes()); werr != nil {
			return werr
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
