package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
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
		b.WriteString(oneLine(p.Key) + ": ")
	}
	b.WriteString(clip(p.Text))
	if p.Want != "" {
		b.WriteString("; " + p.Want)
	}
	return b.String()
}

// longest is how much of a key or of a value an error repeats, in bytes: what is
// longer is no configuration, and a screen has only so many lines.
const longest = 300

func clip(s string) string {
	if len(s) <= longest {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:longest], ""), len(s))
}

// oneLine shows a key in quotes where it holds what would end the line or be an
// order to the terminal.
func oneLine(s string) string {
	if s = clip(s); strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// Error is a configuration that cannot be used: what is wrong with it, a line
// each.
type Error struct {
	Problems []Problem
}

// most is how many problems are told at once; a file that is something else
// altogether has one in each line.
const most = 20

func (e *Error) Error() string {
	lines := make([]string, 0, min(len(e.Problems), most)+1)
	for i, p := range e.Problems {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Problems)-most))
			break
		}
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
