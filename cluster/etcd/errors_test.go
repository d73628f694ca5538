package etcd

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A member that gave up waiting for its cluster, as one without a leader does, is no
// reason for the daemon to end: it waits for etcd.
func TestAMemberThatGaveUpDoesNotAnswer(t *testing.T) {
	for text, want := range map[string]error{
		"context deadline exceeded":       ErrUnreachable,
		"context canceled":                ErrUnreachable,
		"etcdserver: something never met": nil,
	} {
		err := fmt.Errorf("connecting: %w", status.Error(codes.Unknown, text))
		if got := classify(err); !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
