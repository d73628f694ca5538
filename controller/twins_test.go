package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

func TestMembersThatAreOneServer(t *testing.T) {
	at := func(second int) func(*plan.NodeRead) {
		return func(r *plan.NodeRead) { r.Node.Started = time.Unix(int64(second), 0) }
	}
	for name, c := range map[string]struct {
		primary string
		nodes   map[string][]func(*plan.NodeRead)
		wrong   string
	}{
		"all different":            {"a", map[string][]func(*plan.NodeRead){"a": {at(1)}, "b": {at(2), standbyNow}, "c": {at(3), standbyNow}}, ""},
		"two standbys":             {"a", map[string][]func(*plan.NodeRead){"a": {at(1)}, "b": {at(2), standbyNow}, "c": {at(2), standbyNow}}, "b c"},
		"a standby and primary":    {"b", map[string][]func(*plan.NodeRead){"a": {at(1)}, "b": {at(1)}, "c": {at(3), standbyNow}}, "a"},
		"nobody known yet":         {"", map[string][]func(*plan.NodeRead){"a": {at(1)}, "b": {at(1)}}, "b"},
		"of two systems":           {"a", map[string][]func(*plan.NodeRead){"a": {at(1)}, "b": {at(1), func(r *plan.NodeRead) { r.Node.SystemID++ }}}, ""},
		"a server that tells less": {"a", map[string][]func(*plan.NodeRead){"a": {}, "b": {standbyNow}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := map[string]plan.Fact[plan.NodeRead]{}
			for node, changes := range c.nodes {
				read := fakeServer(false)
				for _, change := range changes {
					change(&read)
				}
				nodes[node] = plan.Fact[plan.NodeRead]{Value: read, At: time.Unix(9, 0)}
			}
			separate(nodes, c.primary)
			for node, fact := range nodes {
				wrong := strings.Contains(c.wrong, node)
				if fact.OK() == wrong || wrong && (fact.Reason != plan.ReasonWrongEndpoint || fact.Hint == "") {
					t.Errorf("%s: %q %s", node, fact.Err, fact.Reason)
				}
			}
		})
	}
}

func standbyNow(r *plan.NodeRead) { r.Node.InRecovery = true }
