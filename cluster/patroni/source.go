package patroni

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Folder is where a cluster's keys are in etcd, without a slash at the end.
func Folder(namespace, scope string) string {
	parts := strings.FieldsFunc(namespace, func(r rune) bool { return r == '/' })
	return "/" + strings.Join(append(parts, scope), "/")
}

// Watch gives the keys below a cluster's folder: first as they are, then after
// each change, until ctx ends.
type Watch func(ctx context.Context) <-chan cluster.Keys

// Source follows the keys of one cluster. It may be used from several goroutines.
type Source struct {
	end     context.CancelFunc
	ended   chan struct{}
	first   chan struct{} // closed with the first keys
	changed chan struct{} // of capacity 1

	mu   sync.Mutex
	view View
	err  error
}

// Follow begins to follow. End it with Close.
func Follow(ctx context.Context, watch Watch) *Source {
	ctx, end := context.WithCancel(ctx)
	s := &Source{end: end, ended: make(chan struct{}), first: make(chan struct{}), changed: make(chan struct{}, 1)}
	go s.follow(watch(ctx))
	return s
}

func (s *Source) follow(keys <-chan cluster.Keys) {
	defer close(s.ended)
	begun := false
	for k := range keys {
		if s.take(k) {
			select {
			case s.changed <- struct{}{}:
			default:
			}
		}
		if !begun {
			begun = true
			close(s.first)
		}
	}
}

// take reports whether the topology is another one now. What members say of
// their positions, each few seconds, is no change.
func (s *Source) take(k cluster.Keys) bool {
	view := s.view
	if k.Err == nil {
		view = Parse(k)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	same := (s.err == nil) == (k.Err == nil) && reflect.DeepEqual(s.view.Topology(), view.Topology())
	s.view, s.err = view, k.Err
	return !same
}

// View gives the cluster as it was last seen. While etcd does not answer that
// comes with an error, and may be empty. It waits for the first answer.
func (s *Source) View(ctx context.Context) (View, error) {
	select {
	case <-s.first:
	case <-s.ended:
	case <-ctx.Done():
		return View{}, fmt.Errorf("reading Patroni's keys: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.view, fmt.Errorf("reading Patroni's keys: %w", s.err)
	}
	return s.view, nil
}

// Topology is View, as the controller wants it.
func (s *Source) Topology(ctx context.Context) (cluster.Topology, error) {
	view, err := s.View(ctx)
	if err == nil && len(view.Members) == 0 {
		err = errors.New("no members of this scope in Patroni's keys: are scope and namespace those that Patroni has?")
	}
	return view.Topology(), err
}

// Changed signals that Topology gives something else than before: another
// leader, a member more or less, a pause, another configuration.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Close ends the following.
func (s *Source) Close() {
	s.end()
	<-s.ended
}
