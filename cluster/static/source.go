package static

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Source gives the configured members. It may be used from several goroutines.
type Source struct {
	mu      sync.Mutex
	members []cluster.Member
}

// New checks the members and gives their source. The error names every member
// that is wrong, never a password.
func New(members []cluster.Member) (*Source, error) {
	s := &Source{}
	if err := s.Replace(members); err != nil {
		return nil, err
	}
	return s, nil
}

// Replace puts other members in place of the present ones, for a reload. Where
// they are wrong the present ones stay.
func (s *Source) Replace(members []cluster.Member) error {
	if err := Check(members); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = clone(members)
	return nil
}

// Topology gives the members, in the order of the configuration, and no leader.
// It never fails: nobody is asked.
func (s *Source) Topology(context.Context) (cluster.Topology, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cluster.Topology{Members: clone(s.members)}, nil
}

func clone(members []cluster.Member) []cluster.Member {
	out := make([]cluster.Member, 0, len(members))
	for _, m := range members {
		m.Tags = maps.Clone(m.Tags)
		out = append(out, m)
	}
	return out
}

// Check says what is wrong with the members: none at all, names that are empty
// or stand twice, connection strings that cannot be read or hold a password, and
// two members with the same connection string.
func Check(members []cluster.Member) error {
	if len(members) == 0 {
		return errors.New("no members: name the primary and its standbys")
	}
	var errs []error
	names, places := map[string]int{}, map[string]string{}
	for i, m := range members {
		if m.Name == "" {
			errs = append(errs, fmt.Errorf("member %d has no name", i+1))
		} else if first, twice := names[m.Name]; twice {
			errs = append(errs, fmt.Errorf("members %d and %d are both called %q: give each its own name", first, i+1, m.Name))
		} else {
			names[m.Name] = i + 1
		}
		if err := checkConninfo(m.Conninfo); err != nil {
			errs = append(errs, fmt.Errorf("member %d (%q): %w", i+1, m.Name, err))
			continue
		}
		if other, twice := places[m.Conninfo]; twice {
			errs = append(errs, fmt.Errorf("members %q and %q have the same conninfo: each is a server of its own", other, m.Name))
		}
		places[m.Conninfo] = m.Name
	}
	return errors.Join(errs...)
}
