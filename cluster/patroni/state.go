package patroni

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Sync is the key of synchronous replication. Empty where none leads it.
type Sync struct {
	Leader  string
	Standby []string // the synchronous ones, or in quorum mode those that vote
	Quorum  int64    // how many of them a candidate must see
}

// Synchronous reports whether Patroni would take a member for one that has all
// that was committed. Case does not count, as in synchronous_standby_names.
func (s Sync) Synchronous(member string) bool {
	if s.Leader == "" {
		return false
	}
	for _, name := range append([]string{s.Leader}, s.Standby...) {
		if strings.EqualFold(name, member) {
			return true
		}
	}
	return false
}

// Failover is a switchover or failover that was asked for.
type Failover struct {
	Leader      string // "" for a failover from whoever leads
	Candidate   string // "" for any
	ScheduledAt string // "" for now
}

// Fork is where a timeline ended, as Patroni remembers it.
type Fork struct {
	Timeline cluster.Timeline
	LSN      cluster.LSN
	Reason   string
	At       string // when, "" where it does not say
	Leader   string // who led the next one, "" where it does not say
}

// Status is what the leader said last of itself.
type Status struct {
	Optime      cluster.LSN // where its WAL ended
	Slots       map[string]cluster.LSN
	RetainSlots []string // of members that are away
}

// longestLeader is far more bytes than any member's name has, and few enough for a
// message.
const longestLeader = 1000

func parseLeader(value []byte) (cluster.Opt[string], error) {
	name := string(value)
	switch {
	case name == "":
		return cluster.None[string](), errors.New("it is empty")
	case len(name) > longestLeader:
		return cluster.None[string](), fmt.Errorf("it has %d bytes, and is no name", len(name))
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\n"):
		return cluster.None[string](), errors.New("it is no name")
	}
	return cluster.Some(name), nil
}

func parseSync(value []byte) (Sync, error) {
	o, err := parseObject(value)
	if err != nil {
		return Sync{}, err
	}
	s := Sync{Leader: text(o["leader"])}
	if s.Leader == "" {
		return s, nil
	}
	for _, name := range strings.Split(text(o["sync_standby"]), ",") {
		if name = strings.TrimSpace(name); name != "" {
			s.Standby = append(s.Standby, name)
		}
	}
	s.Quorum = o.int("quorum", 0)
	return s, nil
}

// parseFailover: an empty document is what is left of one that is done, and what
// is no JSON is the form of long ago, leader:candidate.
func parseFailover(value []byte) (cluster.Opt[Failover], error) {
	none := cluster.None[Failover]()
	if strings.TrimSpace(string(value)) == "" {
		return none, nil
	}
	v, err := parseValue(value)
	if err != nil {
		if !utf8.Valid(value) || strings.ContainsAny(string(value), "{}[]\"\x00\n") {
			return none, err
		}
		leader, candidate, _ := strings.Cut(string(value), ":")
		return wanted(Failover{Leader: strings.TrimSpace(leader), Candidate: strings.TrimSpace(candidate)}), nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return none, fmt.Errorf("it is %s, not an object", kindOf(v))
	}
	return wanted(Failover{Leader: text(m["leader"]), Candidate: text(m["member"]), ScheduledAt: text(m["scheduled_at"])}), nil
}

func wanted(f Failover) cluster.Opt[Failover] {
	if f.Leader == "" && f.Candidate == "" {
		return cluster.None[Failover]()
	}
	return cluster.Some(f)
}

func parseHistory(value []byte) ([]Fork, error) {
	v, err := parseValue(value)
	if err != nil {
		return nil, err
	}
	lines, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("it is %s, not a list", kindOf(v))
	}
	var forks []Fork
	for i, line := range lines {
		fields, _ := line.([]any)
		if len(fields) < 2 {
			return nil, fmt.Errorf("line %d of it is no timeline with its end", i+1)
		}
		timeline, okT := integer(fields[0])
		lsn, okL := integer(fields[1])
		if !okT || !okL || timeline <= 0 || timeline > math.MaxUint32 || lsn < 0 {
			return nil, fmt.Errorf("line %d of it is no timeline with its end", i+1)
		}
		fork := Fork{Timeline: cluster.Timeline(timeline), LSN: cluster.LSN(lsn)}
		for j, to := range []*string{&fork.Reason, &fork.At, &fork.Leader} {
			if len(fields) > 2+j {
				*to = text(fields[2+j])
			}
		}
		forks = append(forks, fork)
	}
	return forks, nil
}

// parseStatus: a number alone is the form of long ago.
func parseStatus(value []byte) (Status, error) {
	v, err := parseValue(value)
	if err != nil {
		return Status{}, err
	}
	if n, ok := integer(v); ok && n >= 0 {
		return Status{Optime: cluster.LSN(n)}, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return Status{}, fmt.Errorf("it is %s, not an object", kindOf(v))
	}
	o := object(m)
	s := Status{Optime: position(o["optime"]).Or(0)}
	for name, at := range o.object("slots") {
		if s.Slots == nil {
			s.Slots = map[string]cluster.LSN{}
		}
		s.Slots[name] = position(at).Or(0)
	}
	retained, _ := o["retain_slots"].([]any)
	for _, name := range retained {
		if slot := text(name); slot != "" {
			s.RetainSlots = append(s.RetainSlots, slot)
		}
	}
	return s, nil
}

func parseFailsafe(value []byte) (map[string]string, error) {
	o, err := parseObject(value)
	if err != nil {
		return nil, err
	}
	members := map[string]string{}
	for name, api := range o {
		members[name] = parseAPIURL(text(api))
	}
	return members, nil
}
