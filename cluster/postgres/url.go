package postgres

import (
	"net/url"
	"strings"
)

func isURL(conninfo string) bool {
	return strings.HasPrefix(conninfo, "postgres://") || strings.HasPrefix(conninfo, "postgresql://")
}

// combineURL adds those options to a connection URL that it does not have.
// net/url cannot read the URLs of several hosts, so the parts are cut by hand.
func combineURL(conninfo string, o Options) string {
	_, rest, _ := strings.Cut(conninfo, "://")
	before, query, hasQuery := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(before, "/")
	userinfo, _, hasUserinfo := cutLast(authority, "@")
	user, _, _ := strings.Cut(userinfo, ":")

	has := map[string]bool{"user": hasUserinfo && user != "", "dbname": path != ""}
	for _, pair := range strings.Split(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if key == "database" {
			key = "dbname"
		}
		has[key] = true
	}
	if has["service"] {
		return conninfo
	}
	var more []string
	add := func(key, value string) {
		if value != "" && !has[key] {
			// libpq does not read '+' as a blank.
			more = append(more, key+"="+strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
		}
	}
	add("user", o.User)
	add("dbname", o.DBName)
	add("passfile", o.Passfile)
	add("sslmode", o.SSLMode)
	switch {
	case len(more) == 0:
		return conninfo
	case !hasQuery:
		return conninfo + "?" + strings.Join(more, "&")
	case query == "":
		return conninfo + strings.Join(more, "&")
	default:
		return conninfo + "&" + strings.Join(more, "&")
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}
