package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// value is one setting of a Config: how text becomes it, and how it is shown.
type value interface {
	set(text string) error
	show() any // string, int, []string or a list of maps; no secrets
}

// typed says which YAML scalars stand for the value without quotes.
type typed interface{ tag() string }

type stringValue struct {
	p     *string
	check func(string) error
}

func (v stringValue) set(s string) error {
	if !utf8.ValidString(s) {
		return wrongf("write it in UTF-8", "%q is no text", s)
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		control, _ := utf8.DecodeRuneInString(s[i:])
		return wrongf("write it without", "holds the control character %q", control)
	}
	if v.check != nil {
		if err := v.check(s); err != nil {
			return err
		}
	}
	*v.p = s
	return nil
}
func (v stringValue) show() any { return *v.p }

// pathValue is a file's or folder's name; a relative one is relative to the
// configuration file.
type pathValue struct{ stringValue }

func (v pathValue) anchor(dir string) {
	if *v.p != "" && !filepath.IsAbs(*v.p) {
		*v.p = filepath.Join(dir, *v.p)
	}
}

// urlValue may carry a secret in its user part, path or query, so only scheme
// and host are shown.
type urlValue struct{ stringValue }

func (v urlValue) show() any { return maskURL(*v.p) }

type intValue struct {
	p        *int
	min, max int
}

func (v intValue) tag() string { return "!!int" }
func (v intValue) show() any   { return *v.p }
func (v intValue) set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < v.min || n > v.max {
		return wrongf(fmt.Sprintf("write a whole number from %d to %d", v.min, v.max), "%q is no such number", s)
	}
	*v.p = n
	return nil
}

type durationValue struct {
	p        *time.Duration
	min, max time.Duration
	step     time.Duration // 0: any
}

func (v durationValue) show() any { return FormatDuration(*v.p) }
func (v durationValue) set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return wrongf("write a number and a unit, such as 500ms, 10s or 1h30m", "%q is not a duration", s)
	}
	if d < v.min || d > v.max {
		return wrongf(fmt.Sprintf("write a duration from %s to %s", FormatDuration(v.min), FormatDuration(v.max)), "%q is out of range", s)
	}
	if v.step > 0 && d%v.step != 0 {
		return wrongf("write a multiple of "+FormatDuration(v.step), "%q is too fine", s)
	}
	*v.p = d
	return nil
}

// FormatDuration writes 1h, 5m and 20ms where Go writes 1h0m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// listValue is a list of strings; in the environment divided by commas.
type listValue struct {
	p     *[]string
	check func(string) error
	mask  func(string) string
}

func (v listValue) set(s string) error {
	var items []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return v.setList(items)
}

func (v listValue) setList(items []string) error {
	for i, item := range items {
		if err := v.check(item); err != nil {
			return err
		}
		if slices.Contains(items[:i], item) {
			return wrongf("name each one once", "%q stands there twice", v.masked(item))
		}
	}
	*v.p = items
	return nil
}

func (v listValue) masked(s string) string {
	if v.mask == nil {
		return s
	}
	return v.mask(s)
}

func (v listValue) show() any {
	out := make([]string, 0, len(*v.p))
	for _, s := range *v.p {
		out = append(out, v.masked(s))
	}
	return out
}

func maskURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		if strings.ContainsAny(s, "@/?") {
			return "***"
		}
		return s
	}
	masked := u.Scheme + "://" + u.Host
	if u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		masked += "/***"
	}
	return masked
}

func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(words, s) {
			return nil
		}
		return wrongf("write one of "+strings.Join(words, ", "), "%q is not known", s)
	}
}

func listenAddress(s string) error {
	if s == "" {
		return nil
	}
	want := `write host:port, such as 127.0.0.1:8009, or "" for no listener`
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return wrongf(want, "%q is not an address to listen on", s)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return wrongf(want, "%q has no port from 0 to 65535", s)
	}
	return nil
}

// httpURL accepts http and https URLs with a host.
func httpURL(s string) error {
	u, err := url.Parse(s)
	if s == "" || (err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "") {
		return nil
	}
	shown := "***" // a bare word may be the secret itself
	if err == nil && u.Host != "" {
		shown = maskURL(s)
	}
	return wrongf("write http://host:port/... or https://...", "%q is not a URL", shown)
}

// endpoint accepts what etcd's client dials: host:port, or an http URL without
// a user part.
func endpoint(s string) error {
	want := "write host:port, http://host:port or https://host:port"
	if !strings.Contains(s, "://") {
		host, port, err := net.SplitHostPort(s)
		if err == nil && host != "" && portNumber(port) {
			return nil
		}
		return wrongf(want, "%q is not an etcd endpoint", maskURL(s))
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || !portNumber(u.Port()) {
		return wrongf(want, "%q is not an etcd endpoint", maskURL(s))
	}
	if u.User != nil {
		return wrongf("use etcd.username and etcd.password_file", "%q carries a user name or a password", maskURL(s))
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return wrongf(want, "%q has more than host and port", maskURL(s))
	}
	return nil
}

func portNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && n < 65536
}

// word accepts a name that can be part of an etcd key, a file name and a line
// of output.
func word(s string) error {
	// What cannot be printed is also what turns the direction of a line around.
	bad := func(r rune) bool { return r == '/' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case s == "":
		return wrongf("write a name", "is empty")
	case len(s) > 63:
		return wrongf("write at most 63 bytes", "%q is too long", s)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, bad) || s == "." || s == "..":
		return wrongf("write a name without blanks, slashes and control characters", "%q cannot be a name here", s)
	}
	return nil
}

// keyPrefix accepts an absolute etcd prefix.
func keyPrefix(s string) error {
	if !strings.HasPrefix(s, "/") || s == "/" || strings.HasSuffix(s, "/") || strings.Contains(s, "//") {
		return wrongf("write it as /slotkeeper: a slash in front, none at the end", "%q is not a prefix of etcd keys", s)
	}
	return nil
}

func notEmpty(s string) error {
	if s == "" {
		return wrongf("write a value", "is empty")
	}
	return nil
}
