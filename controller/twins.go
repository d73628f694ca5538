package controller

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// server tells one running server from another: two that are of one system have
// not started in the same microsecond.
type server struct {
	system  cluster.SystemID
	started time.Time
}

// separate finds members whose addresses lead to one server: a proxy, or a
// conninfo with a neighbour's port. One of them is not what it is called, and
// would be judged by its neighbour's mirrors. Which one cannot be told, so none of
// them counts; but a primary is the primary, under the name that it had.
func separate(nodes map[string]plan.Fact[plan.NodeRead], primary string) {
	names := map[server][]string{}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name].Value.Node
		if nodes[name].OK() && !n.Started.IsZero() {
			at := server{n.SystemID, n.Started}
			names[at] = append(names[at], name)
		}
	}
	for _, same := range names {
		if len(same) < 2 {
			continue
		}
		keep := ""
		if !nodes[same[0]].Value.Node.InRecovery {
			keep = same[0]
			if slices.Contains(same, primary) {
				keep = primary
			}
		}
		for _, name := range same {
			if name == keep {
				continue
			}
			fact := nodes[name]
			others := slices.DeleteFunc(slices.Clone(same), func(other string) bool { return other == name })
			fact.Err = fmt.Sprintf("its address leads to the same server as that of %q", others[0])
			fact.Reason = plan.ReasonWrongEndpoint
			fact.Hint = "let each member's conninfo name that member's own server, host and port, not a proxy or another member"
			nodes[name] = fact
		}
	}
}
