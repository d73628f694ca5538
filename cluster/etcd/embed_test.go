package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
)

func embed1(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Embed(t.Context(), EmbedOptions{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func storeID(t *testing.T, url string) string {
	t.Helper()
	c := open(t, options(t, url))
	id, err := c.StoreID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestTheEndpointFileLivesAsLongAsTheServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := embed1(t, dir)
	info, err := os.Stat(filepath.Join(dir, "endpoint"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the endpoint file: %v, %v", info.Mode(), err)
	}
	if !strings.HasPrefix(s.Endpoint(), "http://127.0.0.1:") {
		t.Errorf("it listens on %s", s.Endpoint())
	}
	if got, err := ReadEndpoint(dir); err != nil || got != s.Endpoint() {
		t.Errorf("ReadEndpoint gives %q, %v; want %q", got, err, s.Endpoint())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := ReadEndpoint(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*endpoint*"))
	if err != nil || len(names) != 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// D13.
func TestTheStoreIsTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := embed1(t, dir)
	first := storeID(t, s.Endpoint())
	c := open(t, options(t, s.Endpoint()))
	epoch := campaign(t, c, "a").Epoch()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = embed1(t, dir)
	if again := storeID(t, s.Endpoint()); again != first {
		t.Errorf("the id was %s, is %s after a restart", first, again)
	}
	// The key of the one that was not given back stands until its lease is over.
	if next := campaign(t, open(t, options(t, s.Endpoint())), "b").Epoch(); next <= epoch {
		t.Errorf("epoch %d after %d", next, epoch)
	}
	if other := storeID(t, embed1(t, t.TempDir()).Endpoint()); other == first {
		t.Error("two folders are one store")
	}
}

// After a kill the lease of the process that ran the server stands, and nobody
// renews it: whoever runs the server next has data_dir's lock and ends it. One
// that was a client only may live on.
func TestTheNextHostEndsWhatAKilledOneLeftBehind(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]bool{"the one before ran the server": true, "it was a client": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := embed1(t, dir)
			o := options(t, s.Endpoint())
			o.LeaseTTL, o.Host = time.Minute, host
			epoch := campaign(t, open(t, o), "a").Epoch()
			if err := s.Close(); err != nil { // as a kill does: nothing is given back
				t.Fatal(err)
			}
			o = options(t, embed1(t, dir).Endpoint())
			o.LeaseTTL, o.Host = time.Minute, true
			next := open(t, o)
			if err := next.EndPredecessor(t.Context()); err != nil {
				t.Fatal(err)
			}
			term, err := next.TryCampaign(t.Context(), "b", "")
			var held *NotLeaderError
			if host && (err != nil || term.Epoch() <= epoch) || !host && !errors.As(err, &held) {
				t.Errorf("campaigning gave %v", err)
			}
			if term != nil {
				if err := term.Resign(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestClosingDoesNotWaitForWatches(t *testing.T) {
	t.Parallel()
	s := embed1(t, t.TempDir())
	c := open(t, options(t, s.Endpoint()))
	events := c.WatchPrefix(t.Context())
	<-events
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, events, "the end of the server", func(e Event) bool { return errors.Is(e.Err, ErrUnreachable) })
}

// embedAndWait is what the test binary does as another process.
func embedAndWait(dir string) {
	s, err := Embed(context.Background(), EmbedOptions{DataDir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Endpoint())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestADataDirBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLOTKEEPER_TEST_EMBED="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	url := firstLine(t, out)
	id := storeID(t, url)
	_, err = Embed(t.Context(), EmbedOptions{DataDir: dir})
	if !errors.Is(err, ErrDataDirInUse) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("a second server on %s, of process %d: %v", dir, cmd.Process.Pid, err)
	}
	if got, err := ReadEndpoint(dir); err != nil || got != url {
		t.Errorf("after the refusal: ReadEndpoint gives %q, %v", got, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := ReadEndpoint(dir); !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "left behind") {
		t.Errorf("after a kill: %v", err)
	}
	if got := storeID(t, embed1(t, dir).Endpoint()); got != id {
		t.Errorf("the id was %s, is %s after a kill", id, got)
	}
}

func firstLine(t *testing.T, r io.Reader) string {
	t.Helper()
	buf := make([]byte, 1000)
	n, err := r.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(buf[:n]))
}

func TestEmbedRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"empty": "", "a file": file, "below a file": filepath.Join(file, "x")} {
		if s, err := Embed(t.Context(), EmbedOptions{DataDir: dir}); err == nil {
			_ = s.Close()
			t.Errorf("%s: accepted", name)
		} else if dir != "" && !strings.Contains(err.Error(), file) {
			t.Errorf("%s: the error does not name the path: %v", name, err)
		}
	}
	if _, err := ReadEndpoint(t.TempDir()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestEtcdsLogGoesToOurs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := zapTo(hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: &out}), nil).With(zap.String("member", "m"))
	log.Info("info is too much")
	log.Warn("a warning", zap.Int("n", 7))
	log.Error("an error", zap.Error(errors.New("why")))
	got := out.String()
	for _, want := range []string{"[DEBUG] etcd: a warning:", "n=7", "member=m", "[WARN]  etcd: an error:", "error=why"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if strings.Contains(got, "too much") {
		t.Errorf("info is logged: %q", got)
	}
}

// Closed listeners are what a stop is for, so etcd's word of them is no warning.
func TestACleanStopWarnsOfNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var lock sync.Mutex
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: &out, Mutex: &lock})
	s, err := Embed(t.Context(), EmbedOptions{DataDir: t.TempDir(), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lock.Lock()
	defer lock.Unlock()
	if out.Len() > 0 {
		t.Errorf("it logged:\n%s", out.String())
	}
}
