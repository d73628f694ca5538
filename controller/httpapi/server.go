package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/controller/status"
)

// Source is where the answers come from. Its methods are called side by side.
type Source interface {
	// Status is the last document; false before the first.
	Status() (status.Status, bool)
	// RequestSync has a cycle begun from now on and returns when it is over.
	RequestSync(ctx context.Context) error
	// Forget has a member that is away given up, and returns when that is done. An
	// error with Refused() true says why it is not.
	Forget(ctx context.Context, node string) error
}

// Options say where and for whom to serve.
type Options struct {
	Listen             string        // host:port
	CertFile, KeyFile  string        // "" for plain HTTP
	Username, Password string        // "" for everybody
	StaleAfter         time.Duration // an observation older than this is not ready; 0 for a minute
	SyncTimeout        time.Duration // the longest that POST /sync waits; 0 for 30 s
	Version            string
	Logger             hclog.Logger     // nil for none
	Now                func() time.Time // nil for the clock
	// NotLeading tells the error of a RequestSync that came to a follower.
	NotLeading func(error) bool
}

// Server is a bound listener, and after Serve what answers on it.
type Server struct {
	opts     Options
	listener net.Listener
}

const (
	shutdownWithin = 2 * time.Second
	maxBody        = 4 << 10
	maxHeader      = 16 << 10
	maxSyncs       = 16 // that wait at the same time
)

// Listen binds the address and loads the certificate. The error says what is
// wrong with either.
func Listen(ctx context.Context, o Options) (*Server, error) {
	o = o.normal()
	var config *tls.Config
	if o.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err != nil {
			return nil, fmt.Errorf("loading certificate %s and key %s: %w", o.CertFile, o.KeyFile, err)
		}
		// Read for each connection, so that a renewed certificate needs no restart.
		config = &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
				return &pair, err
			},
		}
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening on http.listen %s: %w", o.Listen, cause(err))
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return &Server{opts: o, listener: listener}, nil
}

// cause takes off what the caller says already.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func (o Options) normal() Options {
	if o.StaleAfter == 0 {
		o.StaleAfter = time.Minute
	}
	if o.SyncTimeout == 0 {
		o.SyncTimeout = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NotLeading == nil {
		o.NotLeading = func(error) bool { return false }
	}
	return o
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close gives up a listener that was never served.
func (s *Server) Close() error { return s.listener.Close() }

// Serve answers until ctx ends, then lets running requests finish for two
// seconds. It gives an error only where serving failed.
func (s *Server) Serve(ctx context.Context, source Source) error {
	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	server := &http.Server{
		Handler:           Handler(s.opts, source),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      s.opts.SyncTimeout + 10*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          s.opts.Logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(s.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving HTTP on %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	endRequests() // a waiting POST /sync would hold the shutdown up
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		_ = server.Close() // the listener is closed already; this ends the connections
	}
	<-failed
	return nil
}
