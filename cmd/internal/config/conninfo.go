package config

import (
	"net/url"
	"strings"
)

// checkConninfo refuses what is no libpq connection string, and one that holds
// a password. It never repeats the text: where a string is broken a password
// cannot be told from the rest.
func checkConninfo(s string) error {
	want := `write "host=... port=..." or postgresql://host:port`
	if strings.TrimSpace(s) == "" {
		return wrongf(want, "is empty")
	}
	var names []string
	if strings.HasPrefix(s, "postgresql://") || strings.HasPrefix(s, "postgres://") {
		u, err := url.Parse(s)
		if err != nil {
			return wrongf(want, "is not a connection URL")
		}
		if _, has := u.User.Password(); has {
			names = append(names, "password")
		}
		for name := range u.Query() {
			names = append(names, name)
		}
	} else {
		var ok bool
		if names, ok = settingNames(s); !ok {
			return wrongf(want+", with blanks and quotes as in libpq", "is not a connection string")
		}
	}
	for _, name := range names {
		switch name {
		case "password", "sslpassword":
			return wrongf("take it out and use postgres.passfile (or PGPASSFILE, ~/.pgpass)", "holds a %s", name)
		case "options", "replication":
			return wrongf("take it out: slotkeeper sets it itself where it needs it", "holds %s", name)
		}
	}
	return nil
}

// settingNames gives the keywords of a keyword = value string, by libpq's rules
// of blanks, quotes and backslashes. False where the text breaks them.
func settingNames(s string) ([]string, bool) {
	var names []string
	for {
		s = strings.TrimLeft(s, blanks)
		if s == "" {
			return names, true
		}
		name, rest, ok := strings.Cut(s, "=")
		name = strings.TrimRight(name, blanks)
		if !ok || name == "" || strings.ContainsAny(name, blanks+`'\`) {
			return nil, false
		}
		names = append(names, name)
		if s, ok = afterValue(strings.TrimLeft(rest, blanks)); !ok {
			return nil, false
		}
	}
}

const blanks = " \t\r\n\f\v"

// afterValue skips one value, quoted or bare.
func afterValue(s string) (string, bool) {
	quoted := strings.HasPrefix(s, "'")
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case quoted && i > 0 && c == '\'':
			return s[i+1:], true
		case !quoted && strings.IndexByte(blanks, c) >= 0:
			return s[i:], true
		}
	}
	return "", !quoted
}
