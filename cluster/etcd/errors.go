package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The sentinels that callers test for with errors.Is.
var (
	// ErrOptions: the configuration cannot work, whatever etcd answers.
	ErrOptions = errors.New("etcd configuration")
	// ErrUnreachable: no etcd answered in time, or it has no quorum. Trying again may help.
	ErrUnreachable = errors.New("etcd does not answer")
	// ErrRefused: etcd answered and refused this user.
	ErrRefused = errors.New("etcd refused")
	// ErrNoSpace: etcd is over its quota and takes no writes.
	ErrNoSpace = errors.New("etcd is out of space")
	// ErrFenced: the leader key is not (or no longer) this term's. Nothing was written.
	ErrFenced = errors.New("not the leader any more")
	// ErrConflict: a part of the ledger is not what this ledger last saw. Nothing was written; Load again.
	ErrConflict = errors.New("the ledger has moved")
	// ErrTooLarge: a part is over MaxPart bytes. Nothing was written.
	ErrTooLarge = errors.New("too large for the ledger")
	// ErrForeignID: the key of the store's id holds what slotkeeper has not written.
	ErrForeignID = errors.New("the store's id is damaged")
	// ErrDataDirInUse: another process runs the embedded server of this data_dir.
	ErrDataDirInUse = errors.New("data_dir is in use")
	// ErrNotRunning: no process runs the embedded server of this data_dir.
	ErrNotRunning = errors.New("no embedded etcd is running")
)

// NotLeaderError says that somebody else leads.
type NotLeaderError struct {
	Holder Holder
}

func (e *NotLeaderError) Error() string {
	s := fmt.Sprintf("controller %q leads (epoch %d)", e.Holder.Name, e.Holder.Epoch)
	if e.Holder.HTTP != "" {
		s += " and listens on " + e.Holder.HTTP
	}
	return s
}

// fail turns what the etcd client gave for one request into an error that names
// the endpoints and the cause. raw is the text that gRPC itself had for the
// request: the client replaces it by a bare "context deadline exceeded".
func (c *Client) fail(ctx context.Context, doing string, err error, raw string) error {
	if err == nil {
		c.setHealth(nil)
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	kind := classify(err)
	if kind == nil {
		return fmt.Errorf("%s: etcd at %s: %w", doing, c.where(), err)
	}
	text := cleanCause(err.Error())
	if raw != "" && errors.Is(kind, ErrUnreachable) {
		text = cleanCause(raw)
	}
	hint := c.certificateHint(text)
	if kind == ErrRefused {
		hint = userHint(c.opts.Username, err)
	}
	out := fmt.Errorf("%s: %w: %s: %s", doing, kind, c.where(), text+hint)
	c.setHealth(out)
	return out
}

// userHint says where to look when etcd has refused the user.
func userHint(user string, err error) string {
	switch {
	case user == "":
		return " (it asks for a user: set etcd.username and etcd.password_file)"
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Sprintf(" (the role of etcd's user %q must read and write below etcd.prefix, and beside Patroni read its keys)", user)
	}
	return fmt.Sprintf(" (etcd.username is %q; is the first line of etcd.password_file its password?)", user)
}

// certificateHint names a refused certificate of ours as the likely cause. With
// TLS 1.3 the server refuses it when the handshake is over for the client, who
// often sees no more than a closed connection.
func (c *Client) certificateHint(text string) string {
	broken := func(sign string) bool { return strings.Contains(text, sign) }
	if !c.asked.Load() || !slices.ContainsFunc([]string{"remote error: tls", "broken pipe", "connection reset", "EOF"}, broken) {
		return ""
	}
	if c.opts.CertFile == "" {
		return " (it asks for a client certificate: give cert_file and key_file)"
	}
	return fmt.Sprintf(" (does it accept the client certificate in cert_file %s?)", c.opts.CertFile)
}

var gaveUp = []string{context.DeadlineExceeded.Error(), context.Canceled.Error()}

// classify gives the sentinel that err stands for, nil for none.
func classify(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return ErrNoSpace
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrPermissionDenied),
		errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrUserNotFound),
		errors.Is(err, rpctypes.ErrInvalidAuthToken), errors.Is(err, rpctypes.ErrInvalidAuthMgmt):
		return ErrRefused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return ErrUnreachable
	}
	code := status.Code(err)
	var server rpctypes.EtcdError
	if errors.As(err, &server) {
		code = server.Code()
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return ErrUnreachable
	case codes.Unauthenticated, codes.PermissionDenied:
		return ErrRefused
	case codes.Unknown:
		// A member without a leader that gave up waiting for one says it so.
		var said interface{ GRPCStatus() *status.Status }
		if errors.As(err, &said) && slices.Contains(gaveUp, said.GRPCStatus().Message()) {
			return ErrUnreachable
		}
	}
	return nil
}

func isCompacted(err error) bool { return errors.Is(err, rpctypes.ErrCompacted) }

// definite reports whether etcd itself said that it did not do the request. All
// else (a time-out, a broken connection) may have been done.
func definite(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrNoSpace)
}

// cleanCause takes gRPC's layers off a connection error.
func cleanCause(s string) string {
	for _, layer := range []string{"rpc error: ", "latest balancer error: ", "last connection error: "} {
		if i := strings.LastIndex(s, layer); i >= 0 {
			s = s[i+len(layer):]
		}
	}
	for {
		_, desc, more := strings.Cut(s, "desc = ")
		if !more {
			break
		}
		s = desc
		if q, err := strconv.Unquote(desc); err == nil {
			s = q
			break
		}
	}
	for _, layer := range []string{"transport: ", "Error while dialing: ", "authentication handshake failed: "} {
		s = strings.TrimPrefix(s, layer)
	}
	return s
}
