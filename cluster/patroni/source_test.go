package patroni

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// follow gives a source, and a way to tell it of keys that returns when it has
// taken them.
func follow(t *testing.T) (*Source, func(cluster.Keys)) {
	t.Helper()
	keys := make(chan cluster.Keys)
	s := Follow(t.Context(), func(context.Context) <-chan cluster.Keys { return keys })
	t.Cleanup(func() {
		close(keys)
		s.Close()
	})
	// The second is taken only when the first has been.
	return s, func(k cluster.Keys) { keys <- k; keys <- k }
}

func changed(s *Source) bool {
	select {
	case <-s.Changed():
		return true
	default:
		return false
	}
}

func TestSourceSignalsWhatMatters(t *testing.T) {
	s, tell := follow(t)
	tell(with("4.0.7", nil))
	topology, err := s.Topology(t.Context())
	if err != nil || len(topology.Members) != 3 || !changed(s) {
		t.Fatalf("%+v %v", topology, err)
	}
	moved := strings.Replace(samples["4.0.7"]["members/node2"], "67363792", "67363999", 1)
	tell(with("4.0.7", map[string]string{"members/node2": moved}))
	if changed(s) {
		t.Error("a position that has moved is no other topology")
	}
	for _, change := range []map[string]string{
		{"leader": "node2"}, {"leader": ""}, {"members/node3": ""}, {"config": `{"pause":false}`}, {"members/node3": "{"},
	} {
		tell(with("4.0.7", change))
		if !changed(s) {
			t.Errorf("no signal of %v", change)
		}
	}
}

func TestSourceWithoutEtcd(t *testing.T) {
	s, tell := follow(t)
	gone := errors.New("no etcd")
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Topology(short); !errors.Is(err, context.Canceled) {
		t.Errorf("before the first keys: %v", err)
	}
	tell(with("4.0.7", nil))
	tell(cluster.Keys{Err: gone})
	topology, err := s.Topology(t.Context())
	if !errors.Is(err, gone) || len(topology.Members) != 3 || !changed(s) {
		t.Errorf("what was known is not given: %+v %v", topology, err)
	}
	tell(cluster.Keys{})
	if _, err := s.Topology(t.Context()); err == nil || !strings.Contains(err.Error(), "no members of this scope") {
		t.Errorf("an empty folder: %v", err)
	}
}
