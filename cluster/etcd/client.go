package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
)

// Client speaks to one etcd about one scope. It may be used from several goroutines.
type Client struct {
	opts Options
	log  hclog.Logger
	v3   *clientv3.Client

	asked  atomic.Bool // a server asked for our certificate
	tls    *tls.Config // nil without TLS
	quotas sync.Map    // string, an endpoint, to int64: the quota that its metrics gave

	mu     sync.Mutex
	health error
	last   *Term // the last one that was won, nil when nothing of it can be left
}

// Open connects and asks once. It fails with ErrOptions for a configuration
// that cannot work, ErrUnreachable or ErrRefused. ctx bounds Open only; end the
// client with Close.
func Open(ctx context.Context, o Options) (*Client, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	c := &Client{opts: o, log: o.Logger}
	if err := c.dial(ctx); err != nil {
		return nil, err
	}
	err = c.bounded(ctx, o.DialTimeout, "connecting to etcd", func(ctx context.Context) error {
		_, err := c.v3.Get(ctx, c.key("id"))
		return err
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Client) dial(ctx context.Context) error {
	tlsConfig, err := c.opts.tlsConfig(&c.asked)
	if err != nil {
		return err
	}
	c.tls = tlsConfig
	password, err := c.opts.password()
	if err != nil {
		return err
	}
	// New fetches the first token: the note catches gRPC's text for that, and ctx
	// can end it. Afterwards ctx has no part in the client's life.
	note := &note{}
	base, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), noteKey{}, note))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	cfg := clientv3.Config{
		Endpoints:            c.opts.Endpoints,
		DialTimeout:          c.opts.DialTimeout,
		DialKeepAliveTime:    10 * time.Second, // the least that gRPC allows; finds dead connections under watches
		DialKeepAliveTimeout: 3 * time.Second,
		TLS:                  tlsConfig,
		Username:             c.opts.Username,
		Password:             password,
		Context:              base,
		Logger:               zap.NewNop(), // its messages repeat the errors that it returns
		DialOptions:          dialOptions(),
	}
	if tlsConfig != nil {
		cfg.DialOptions = append(cfg.DialOptions,
			grpc.WithTransportCredentials(namedCreds{credentials.NewTLS(tlsConfig)}))
	}
	if c.v3, err = clientv3.New(cfg); err != nil {
		cancel()
	}
	return c.fail(ctx, "connecting to etcd", err, note.text())
}

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		// gRPC would wait up to two minutes between tries: far longer than a lease lives.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithChainUnaryInterceptor(noteUnary),
		grpc.WithChainStreamInterceptor(noteStream),
	}
}

// Close ends the connections. A Term of this client ends with it; resign first.
func (c *Client) Close() error {
	if err := c.v3.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("closing the connection to etcd at %s: %w", c.where(), err)
	}
	return nil
}

// Health is nil while etcd answers, else the error of the last request. It asks nothing.
func (c *Client) Health() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

func (c *Client) setHealth(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.health = err
}

func (c *Client) past() *Term {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *Client) remember(t *Term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = t
}

// StoreID gives the random UUID of this etcd and scope, made at the first call
// of all. Revisions, and so epochs, of different stores are not comparable.
// ErrForeignID where the key holds something else.
func (c *Client) StoreID(ctx context.Context) (string, error) {
	id, found, err := c.storedID(ctx)
	if err != nil || found {
		return id, err
	}
	if id, err = c.makeID(ctx); err != nil {
		return "", err
	}
	return id, c.checkID(id)
}

// CheckStoreID writes nothing: nil also where there is no id yet, ErrForeignID as
// StoreID.
func (c *Client) CheckStoreID(ctx context.Context) error {
	_, _, err := c.storedID(ctx)
	return err
}

func (c *Client) storedID(ctx context.Context) (id string, found bool, err error) {
	err = c.do(ctx, "reading the store's id", func(ctx context.Context) error {
		resp, err := c.v3.Get(ctx, c.key("id"))
		if err != nil || len(resp.Kvs) == 0 {
			return err
		}
		id, found = string(resp.Kvs[0].Value), true
		return nil
	})
	if err == nil && found {
		err = c.checkID(id)
	}
	return id, found, err
}

// checkID: nodes would refuse it one by one, each in words of its own.
func (c *Client) checkID(id string) error {
	if len(id) == len(uuid.Nil.String()) && uuid.Validate(id) == nil {
		return nil
	}
	return fmt.Errorf("etcd at %s: the key %s holds %.64q, and slotkeeper writes a UUID there: %w; put back the store that "+
		"SELECT (fence).store FROM slotkeeper.node() gives on a node, or run slotkeeper run --take-over, which writes a new one",
		c.where(), c.key("id"), id, ErrForeignID)
}

func (c *Client) makeID(ctx context.Context) (id string, err error) {
	key, fresh := c.key("id"), uuid.NewString()
	err = c.do(ctx, "making the store's id", func(ctx context.Context) error {
		resp, err := c.v3.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, fresh)).
			Else(clientv3.OpGet(key)).Commit()
		if err != nil {
			return err
		}
		id = fresh
		if !resp.Succeeded {
			id = string(resp.Responses[0].GetResponseRange().Kvs[0].Value)
		}
		return nil
	})
	return id, err
}

// RenewStore gives this etcd and scope another id, as if it were a new store: for
// one that was restored or copied, whose epochs say nothing beside those before.
// ErrFenced when the term does not lead any more.
func (c *Client) RenewStore(ctx context.Context, t *Term) (string, error) {
	fresh, doing := uuid.NewString(), "renewing the store's id"
	fenced := false
	err := c.do(ctx, doing, func(ctx context.Context) error {
		resp, err := c.v3.Txn(ctx).If(c.isLeader(t.epoch)).Then(clientv3.OpPut(c.key("id"), fresh)).Commit()
		fenced = err == nil && !resp.Succeeded
		return err
	})
	if err != nil {
		return "", err
	}
	if fenced {
		return "", fmt.Errorf("%s: epoch %d: %w", doing, t.epoch, ErrFenced)
	}
	return fresh, nil
}

// DeleteAll deletes every key of the scope, the leader key too, in one
// transaction, and ends the term. ErrFenced when the term does not lead any more.
func (c *Client) DeleteAll(ctx context.Context, t *Term) error {
	fenced := false
	err := c.do(ctx, "deleting the keys under "+c.key(""), func(ctx context.Context) error {
		resp, err := c.v3.Txn(ctx).If(c.isLeader(t.epoch)).
			Then(clientv3.OpDelete(c.key(""), clientv3.WithPrefix())).Commit()
		fenced = err == nil && !resp.Succeeded
		return err
	})
	if err != nil {
		return err
	}
	if fenced {
		return fmt.Errorf("deleting the keys under %s: epoch %d: %w", c.key(""), t.epoch, ErrFenced)
	}
	return t.Resign(ctx)
}

// key gives <prefix>/<scope>/<name>. The slash behind the scope keeps "shop" from meaning "shop2" too.
func (c *Client) key(name string) string { return c.opts.Prefix + "/" + c.opts.Scope + "/" + name }

func (c *Client) where() string { return strings.Join(c.opts.Endpoints, ", ") }

// do runs one request within RequestTimeout.
func (c *Client) do(ctx context.Context, doing string, f func(context.Context) error) error {
	return c.bounded(ctx, c.opts.RequestTimeout, doing, f)
}

func (c *Client) bounded(ctx context.Context, limit time.Duration, doing string, f func(context.Context) error) error {
	note := &note{}
	rctx, cancel := context.WithTimeout(context.WithValue(ctx, noteKey{}, note), limit)
	defer cancel()
	// A member cut off from its quorum then says so at once, and the next try goes to another one.
	err := f(clientv3.WithRequireLeader(rctx))
	return c.fail(ctx, doing, err, note.text())
}
