package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
)

func TestExitCodes(t *testing.T) {
	c := config.Default()
	for name, x := range map[string]struct {
		err  error
		want int
	}{
		"nothing":           {nil, 0},
		"an error":          {errors.New("x"), 1},
		"configuration":     {fmt.Errorf("loading: %w", &config.Error{}), 2},
		"its own":           {fmt.Errorf("doing: %w", &ExitError{Code: 3}), 3},
		"a deadline":        {fmt.Errorf("doing: %w", context.DeadlineExceeded), 6},
		"etcd options":      {storeError(fmt.Errorf("x: %w", etcd.ErrOptions), c), 2},
		"etcd unreachable":  {storeError(fmt.Errorf("x: %w", etcd.ErrUnreachable), c), 4},
		"etcd not running":  {storeError(fmt.Errorf("x: %w", etcd.ErrNotRunning), c), 4},
		"data_dir in use":   {storeError(fmt.Errorf("x: %w", etcd.ErrDataDirInUse), c), 5},
		"etcd said no":      {storeError(fmt.Errorf("x: %w", etcd.ErrRefused), c), 1},
		"quiet with a code": {quiet(3), 3},
		"quiet without":     {quiet(0), 0},
	} {
		if got := exitCode(x.err); got != x.want {
			t.Errorf("%s: got %d, want %d", name, got, x.want)
		}
	}
	if message(quiet(3)) != "" || message(exitf(3, "x")) != "x" {
		t.Error("messages")
	}
}

// A server's message may hold anything, and each line of it names its speaker.
func TestComplaintsDoNotReachTheTerminalAsTheyAre(t *testing.T) {
	var b bytes.Buffer
	complain(&b, errors.New("bad\x1b[31m\nworse"))
	if want := "slotkeeper: bad\\x1b[31m\nslotkeeper: worse\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestNamesOfSilentMembersDoNotReachTheTerminalAsTheyAre(t *testing.T) {
	if got, want := silentMember("n\nl\x1b[31m", "its conn_url\nis no URL"), `slotkeeper: member n l\x1b[31m did not answer: its conn_url is no URL`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHowLongTheEndMayTake(t *testing.T) {
	for name, want := range map[string]time.Duration{"run": stopWithin, "demo": 30 * time.Second, "nix": stopWithin} {
		if got := patience(newRootCommand(), []string{name, "--config", "x"}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
