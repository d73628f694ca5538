package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

// EmbedOptions says where the embedded server lives.
type EmbedOptions struct {
	DataDir string       // made with mode 0700 where it is missing
	Logger  hclog.Logger // nil for none
}

// Server is an embedded etcd of one member, on loopback, for those who have no
// etcd. It holds data_dir's lock from Embed to Close.
type Server struct {
	dir      string
	endpoint string
	lock     *os.File
	etcd     *embed.Etcd
	rpc      *grpc.Server
	close    sync.Once
	closing  atomic.Bool
}

// Embed starts the server and returns when it takes requests. It fails with
// ErrDataDirInUse while another process runs one there. Clients of other
// processes find it by ReadEndpoint.
func Embed(ctx context.Context, o EmbedOptions) (*Server, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil || o.DataDir == "" {
		return nil, fmt.Errorf("%w: data_dir %q: %w", ErrOptions, o.DataDir, errors.Join(err, errors.New("want a folder")))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making data_dir: %w", err)
	}
	s := &Server{dir: dir}
	if s.lock, err = lockDir(ctx, dir); err != nil {
		return nil, err
	}
	if err := s.start(ctx, o.Logger); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the embedded etcd in %s: %w", dir, err), s.Close())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, log hclog.Logger) error {
	// A file left over from a kill must not lead anybody to a port that is another's by now.
	if err := removeEndpoint(s.dir); err != nil {
		return err
	}
	cfg := config(s.dir, log, &s.closing)
	// The only way to the gRPC server that Close needs. It is there once etcd is ready.
	rpc := make(chan *grpc.Server, 1)
	cfg.ServiceRegister = func(r *grpc.Server) { rpc <- r }
	var err error
	if s.etcd, err = embed.StartEtcd(cfg); err != nil {
		return err
	}
	select {
	case s.rpc = <-rpc:
	case <-s.etcd.Server.StopNotify():
		return errors.New("it stopped before it was ready")
	case err := <-s.etcd.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.endpoint = "http://" + s.etcd.Clients[0].Addr().String()
	return writeEndpoint(s.dir, s.endpoint)
}

func config(dir string, log hclog.Logger, closing *atomic.Bool) *embed.Config {
	// Port 0: the kernel picks a free one, with no moment in which another process
	// can take it. The peer URL must be the same at every start, as this one is;
	// nobody dials it, there is one member.
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg := embed.NewConfig()
	cfg.Name = "slotkeeper"
	cfg.Dir = filepath.Join(dir, "etcd")
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{anyPort}, []url.URL{anyPort}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{anyPort}, []url.URL{anyPort}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.EnableGRPCGateway = false
	// The ledger is small and its history is nobody's: keep little of it on disk and in memory.
	cfg.SnapshotCount = 1000
	cfg.SnapshotCatchUpEntries = 100
	cfg.MaxSnapFiles, cfg.MaxWalFiles = 2, 2
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModeRevision, "1000"
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapTo(log, closing))
	return cfg
}

// Endpoint is the URL at which clients on this machine reach the server.
func (s *Server) Endpoint() string { return s.endpoint }

// Err brings the error with which the server ended by itself; it is closed by Close.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Close stops the server, takes the endpoint file away and gives data_dir free.
// Clients that are still connected lose their connections. May be called again.
func (s *Server) Close() error {
	var err error
	s.close.Do(func() {
		s.closing.Store(true)
		err = removeEndpoint(s.dir)
		if s.rpc != nil {
			// etcd would wait seven seconds for watches, which never end by themselves.
			s.rpc.Stop()
		}
		if s.etcd != nil {
			s.etcd.Close()
		}
		err = errors.Join(err, s.lock.Close())
	})
	return err
}
