package config

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Place string // such as "slotkeeper.yaml:12" or "environment SLOTKEEPER_LOG_LEVEL"
	Key   string // such as "sync.interval", "" where no key is concerned
	Text  string // what is wrong, with the value
	Want  string // what would be right
}

func (p Problem) Error() string {
	var b strings.Builder
	if p.Place != "" {
		b.WriteString(p.Place + ": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	if p.Want != "" {
		b.WriteString("; " + p.Want)
	}
	return b.String()
}

// Error is a configuration that cannot be used: everything that is wrong with
// it, a line each.
type Error struct {
	Problems []Problem
}

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

// IsError reports whether err is about the configuration.
func IsError(err error) bool {
	var e *Error
	return errors.As(err, &e)
}

// wrong is a problem of a value, before its place and key are known.
type wrong struct {
	text, want string
}

func (w wrong) Error() string { return w.text + "; " + w.want }

func wrongf(want, format string, args ...any) error {
	return wrong{text: fmt.Sprintf(format, args...), want: want}
}

func problemOf(place, key string, err error) Problem {
	var w wrong
	if errors.As(err, &w) {
		return Problem{Place: place, Key: key, Text: w.text, Want: w.want}
	}
	return Problem{Place: place, Key: key, Text: err.Error()}
}
