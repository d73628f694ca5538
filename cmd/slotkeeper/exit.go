package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
)

// The exit codes of every command.
const (
	exitOK        = 0
	exitError     = 1
	exitUsage     = 2 // usage or configuration
	exitNotSafe   = 3 // something is not safe, or was refused
	exitUnknown   = 4 // unreachable or unknown
	exitNotLeader = 5
	exitTimeout   = 6 // timed out, or still running
)

// ExitError is an error that decides the exit code. Err nil ends with the code
// and no message: the result on standard output has said it all.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

func exitf(code int, format string, args ...any) error {
	return &ExitError{Code: code, Err: fmt.Errorf(format, args...)}
}

// quiet ends with the code and no message.
func quiet(code int) error {
	if code == exitOK {
		return nil
	}
	return &ExitError{Code: code}
}

func exitCode(err error) int {
	var e *ExitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.Code
	case config.IsError(err):
		return exitUsage
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	}
	return exitError
}

// message is what is said of err, "" for nothing.
func message(err error) string {
	var e *ExitError
	if err == nil || (errors.As(err, &e) && e.Err == nil) {
		return ""
	}
	return err.Error()
}
