package patroni

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Role of a member, by its own word. It is a moment old: PostgreSQL itself says
// what it is now.
type Role string

// The roles, under their names of today: master is primary.
const (
	Primary       Role = "primary"
	Replica       Role = "replica"
	StandbyLeader Role = "standby_leader" // leads a standby cluster: in recovery
)

// Member is one member key.
type Member struct {
	Name    string
	Host    string // of its server
	Port    uint16
	API     string // where its REST API answers: scheme, host and port; "" where it does not say
	Role    Role
	State   string // running, starting, stopped and others
	Version string // of Patroni
	// Running: its server ran when the key was last written, each loop_wait or so.
	// From where it gets its WAL by now the server itself knows better.
	Running  bool
	Timeline cluster.Opt[cluster.Timeline]
	// Position is where its WAL ends, received or replayed, on a primary written.
	Position cluster.Opt[cluster.LSN]
	Receive  cluster.Opt[cluster.LSN] // 4.1 and later
	Replay   cluster.Opt[cluster.LSN] // 4.1 and later
	Tags     Tags
	Paused   bool // it knows of the pause
	// Unusable says what in its key keeps it from being reached, "" where nothing does.
	Unusable string
}

func parseMember(name string, value []byte) Member {
	m := Member{Name: name}
	o, err := memberObject(value)
	if err != nil {
		m.Unusable = err.Error()
		return m
	}
	if m.Host, m.Port, err = parseConnURL(o["conn_url"]); err != nil {
		m.Unusable = err.Error()
	}
	m.API = parseAPIURL(text(o["api_url"]))
	m.Role, m.State, m.Version = Role(text(o["role"])), text(o["state"]), text(o["version"])
	if m.Role == "master" {
		m.Role = Primary
	}
	m.Running = slices.Contains([]string{"running", "streaming", "in archive recovery"}, m.State)
	m.Position, m.Receive, m.Replay = position(o["xlog_location"]), position(o["receive_lsn"]), position(o["replay_lsn"])
	if n, ok := integer(o["timeline"]); ok && n > 0 && n <= 1<<32-1 {
		m.Timeline = cluster.Some(cluster.Timeline(n))
	}
	m.Paused = o.on("pause")
	m.Tags = parseTags(o.object("tags"), m.atLeast(3, 2))
	return m
}

// memberObject reads a member's key. What begins with postgres is Patroni's form
// of before 1.0: the connection's URL, with the API's as a parameter.
func memberObject(value []byte) (object, error) {
	if !strings.HasPrefix(string(value), "postgres") {
		return parseObject(value)
	}
	u, err := url.Parse(string(value))
	if err != nil {
		return nil, errors.New("it is no URL") // not quoted: it may hold a password
	}
	api := u.Query().Get("application_name")
	u.RawQuery = ""
	return object{"conn_url": u.String(), "api_url": api, "state": "running"}, nil
}

func position(v any) cluster.Opt[cluster.LSN] {
	if n, ok := integer(v); ok && n > 0 {
		return cluster.Some(cluster.LSN(n))
	}
	return cluster.None[cluster.LSN]()
}

// parseConnURL gives where the member's server is. Users and passwords that it
// may hold, as it did long ago, are passed over.
func parseConnURL(v any) (host string, port uint16, err error) {
	s := text(v)
	if s == "" {
		return "", 0, errors.New("it says no conn_url")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", 0, errors.New("its conn_url is no URL") // not quoted: it may hold a password
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return "", 0, errors.New("its conn_url does not begin with postgres://")
	case u.Hostname() == "":
		return "", 0, errors.New("its conn_url names no host")
	case strings.ContainsAny(u.Hostname(), ",\x00"):
		return "", 0, errors.New("its conn_url names several hosts")
	}
	port = 5432
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("its conn_url names port %s", p)
		}
		port = uint16(n)
	}
	return u.Hostname(), port, nil
}

// parseAPIURL keeps scheme, host and port; "" for what is no address.
func parseAPIURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// plain is what stands in a connection string without quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9._:-]+$`)

// Conninfo is libpq's connection string for its server, without a user or a
// database; "" where it cannot be reached.
func (m Member) Conninfo() string {
	if m.Host == "" {
		return ""
	}
	host := m.Host
	if !plain.MatchString(host) {
		host = "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(host) + "'"
	}
	return "host=" + host + " port=" + strconv.Itoa(int(m.Port))
}

// Address is its server's host and port.
func (m Member) Address() string { return net.JoinHostPort(m.Host, strconv.Itoa(int(m.Port))) }

// atLeast reports whether its Patroni is of this version or a later one; true
// where it does not say.
func (m Member) atLeast(major, minor int) bool {
	parts := strings.SplitN(m.Version, ".", 3)
	if len(parts) < 2 {
		return true
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	if errA != nil || errB != nil {
		return true
	}
	return a > major || a == major && b >= minor
}

// allAtLeast is false where a member does not say its version.
func allAtLeast(members []Member, major, minor int) bool {
	for _, m := range members {
		if m.Version == "" || !m.atLeast(major, minor) {
			return false
		}
	}
	return len(members) > 0
}
