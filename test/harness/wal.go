package harness

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// SmallWAL are settings under which a server keeps no WAL that nothing needs.
func SmallWAL() map[string]string {
	return map[string]string{"min_wal_size": "32MB", "max_wal_size": "48MB", "checkpoint_timeout": "1h"}
}

// FillWAL moves a primary on by so many segments of WAL, 16 MB each, with a row
// in table t (id int) in each. The consumers of some slots (in the plugin
// test_decoding) follow, so that those need none of it afterwards; so do the standbys.
func (s *Scene) FillWAL(n *lab.Node, segments int, followed ...string) {
	s.T.Helper()
	for range segments {
		s.Exec(n, "INSERT INTO t VALUES (0); SELECT pg_switch_wal()")
		for _, standby := range s.Nodes()[1:] {
			s.OK(standby.WaitCatchup(s.Ctx, n)) // else a limit on WAL would cut it off
		}
		s.Exec(n, "CHECKPOINT")
		for _, slot := range followed {
			s.Get(n, slot)
		}
	}
}

// Lost waits until the server has given up a slot for its WAL, by checkpoints.
func (s *Scene) Lost(n *lab.Node, slot string) {
	s.T.Helper()
	s.Wait(fmt.Sprintf("slot %s on %s to be lost", slot, n.Name()), func() (bool, string) {
		s.Exec(n, "CHECKPOINT")
		state := s.Text(n, fmt.Sprintf("SELECT max(wal_status) FROM pg_replication_slots WHERE slot_name = '%s'", slot))
		return state == "lost", "its wal_status is " + state
	})
}

// Record tells the record of WAL that begins at an LSN of a node's first timeline,
// as pg_waldump does.
func (s *Scene) Record(n *lab.Node, at cluster.LSN) string {
	s.T.Helper()
	cmd := exec.CommandContext(s.Ctx, filepath.Join(s.Lab.BinDir(), "pg_waldump"),
		"--path", filepath.Join(n.DataDir(), "pg_wal"), "--start", at.String(), "--limit", "1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.T.Fatalf("reading the record at %s on %s: %v: %s", at, n.Name(), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Metrics gives the samples of the controller that hold each of these texts.
func (s *Scene) Metrics(with ...string) []string {
	s.T.Helper()
	request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, s.Daemon.URL()+"/metrics", http.NoBody)
	s.OK(err)
	response, err := http.DefaultClient.Do(request)
	s.OK(err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	s.OK(err)
	var found []string
lines:
	for _, line := range strings.Split(string(text), "\n") {
		for _, w := range with {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		found = append(found, line)
	}
	return found
}
