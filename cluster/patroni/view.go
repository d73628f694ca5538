package patroni

import (
	"maps"
	"slices"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// View is a cluster as its keys showed it at one moment.
type View struct {
	Revision int64 // of etcd
	// Leader is the name in the leader key, absent where there is none: nobody
	// leads, or Patroni has just lost etcd.
	Leader   cluster.Opt[string]
	Members  []Member // by name
	Config   Config
	Sync     Sync
	Failover cluster.Opt[Failover] // asked for and not done yet
	// FailoverModified is etcd's revision of that key's last change, 0 where it is not
	// there: Patroni has taken up no request since.
	FailoverModified int64
	History          []Fork
	Status           Status
	Failsafe         map[string]string // in failsafe mode: the members that the leader counts on, and their API's address
	SystemID         string            // the key initialize
	Problems         []cluster.KeyProblem
}

// Parse reads the keys of one cluster, by their names below the scope: "leader",
// "members/node1". It never fails: a key that cannot be read is one of Problems,
// and what it would have said is as if the key were not there. Keys that it does
// not know are passed over.
func Parse(keys cluster.Keys) View {
	v := View{Revision: keys.Revision, Config: defaultConfig(), FailoverModified: keys.Modified["failover"]}
	for _, name := range slices.Sorted(maps.Keys(keys.Values)) {
		value := keys.Values[name]
		var err error
		switch name {
		case "leader":
			v.Leader, err = parseLeader(value)
		case "config":
			v.Config, err = parseConfig(value)
		case "sync":
			v.Sync, err = parseSync(value)
		case "failover":
			v.Failover, err = parseFailover(value)
		case "history":
			v.History, err = parseHistory(value)
		case "status":
			v.Status, err = parseStatus(value)
		case "failsafe":
			v.Failsafe, err = parseFailsafe(value)
		case "initialize":
			v.SystemID = strings.TrimSpace(string(value))
		default:
			member, ok := strings.CutPrefix(name, "members/")
			if !ok || member == "" || strings.Contains(member, "/") {
				continue
			}
			m := parseMember(member, value)
			v.Members = append(v.Members, m)
			if m.Unusable != "" {
				v.problem(name, m.Unusable)
			}
			continue
		}
		if err != nil {
			v.problem(name, err.Error())
		}
	}
	v.Config.Slots.Members = memberSlots(v.Members)
	for _, slot := range v.Status.RetainSlots {
		if _, known := v.Config.Slots.Members[slot]; !known {
			v.Config.Slots.Members[slot] = nil // of a member that is away
		}
	}
	v.Config.Slots.SparesFailover = allAtLeast(v.Members, 4, 1)
	return v
}

func (v *View) problem(key, text string) {
	v.Problems = append(v.Problems, cluster.KeyProblem{Key: key, Text: text})
}

// Member finds a member by its name.
func (v View) Member(name string) (Member, bool) {
	for _, m := range v.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// Topology is the part of it that the controller decides on.
func (v View) Topology() cluster.Topology {
	t := cluster.Topology{Leader: v.Leader, Members: make([]cluster.Member, 0, len(v.Members))}
	for _, m := range v.Members {
		t.Members = append(t.Members, cluster.Member{Name: m.Name, Conninfo: m.Conninfo(), Tags: m.Tags.shown(), Unusable: m.Unusable})
	}
	t.Manager = &cluster.Manager{
		Paused: v.Config.Paused, StandbyCluster: v.Config.StandbyCluster, TTL: v.Config.TTL,
		UseSlots: v.Config.UseSlots, Slots: v.Config.Slots, Problems: v.Problems,
	}
	return t
}
