package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// note keeps gRPC's own words for a request's last failure. The etcd client
// replaces them by the context's error when time is up, and then nobody would
// learn whether the port was closed or the certificate wrong.
type note struct {
	mu   sync.Mutex
	last string
}

type noteKey struct{}

func (n *note) set(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = err.Error()
}

func (n *note) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

func takeNote(ctx context.Context, err error) {
	if n, ok := ctx.Value(noteKey{}).(*note); ok && err != nil {
		n.set(err)
	}
}

func noteUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	takeNote(ctx, err)
	if method == etcdserverpb.Auth_Authenticate_FullMethodName && errors.Is(rpctypes.Error(err), rpctypes.ErrInvalidAuthToken) {
		// Servers up to 3.4 look at the old token even of a request for a new one, and
		// the client goes on sending it, with calls within calls until time is up
		// (etcd's pull request 12549). This answer makes it drop the token.
		return rpctypes.ErrGRPCAuthNotEnabled
	}
	return err
}

func noteStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	takeNote(ctx, err)
	return s, err
}

// namedCreds puts the peer's address before a failed handshake's error: with
// several endpoints it must be told which one has the wrong certificate.
type namedCreds struct {
	credentials.TransportCredentials
}

func (n namedCreds) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := n.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", raw.RemoteAddr(), err)
	}
	return conn, info, nil
}

func (n namedCreds) Clone() credentials.TransportCredentials {
	return namedCreds{n.TransportCredentials.Clone()}
}
