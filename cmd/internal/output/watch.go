package output

import (
	"bytes"
	"context"
	"io"
	"time"
)

// clearScreen moves a terminal's cursor home and empties the screen.
const clearScreen = "\x1b[H\x1b[2J"

// Watch calls once, now and then each interval, until ctx ends; on a terminal
// each result takes the place of the one before. It gives the last error of
// once, and none for the end of ctx itself.
func Watch(ctx context.Context, w io.Writer, interval time.Duration, once func(ctx context.Context, w io.Writer) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	terminal := IsTerminal(w)
	for {
		var b bytes.Buffer
		if terminal {
			b.WriteString(clearScreen)
		}
		err := once(ctx, &b)
		if ctx.Err() != nil {
			return nil
		}
		if _, werr := w.Write(b.Bytes()); werr != nil {
			return werr
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
