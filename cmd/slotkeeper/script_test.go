package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// setup gives each script a port that nobody listens on.
func setup(env *testscript.Env) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	env.Setenv("FREE_PORT", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	return l.Close()
}

// exits runs a command and expects exactly this exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [argument...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("%v: exit code %d, want %d", args[1:], got, want)
	}
}

// logged waits until a file holds what the expression matches.
func logged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: logged file expression")
	}
	want, err := regexp.Compile(args[1])
	ts.Check(err)
	name := ts.MkAbs(args[0])
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(name); err == nil && want.Match(text) {
			return
		}
	}
	text, _ := os.ReadFile(name) // what is missing shows in the empty text
	ts.Fatalf("%s never held %s:\n%s", args[0], args[1], text)
}

// sends sends a signal to the script's only background command.
func sends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sends HUP|TERM")
	}
	signal, ok := map[string]os.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM}[args[0]]
	if !ok || len(ts.BackgroundCmds()) != 1 {
		ts.Fatalf("no such signal, or not one background command")
	}
	ts.Check(ts.BackgroundCmds()[0].Process.Signal(signal))
}
