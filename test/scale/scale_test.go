package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/standby"
)

// unchanged gives the changes that say what the mirrors on b are already, and
// the fence that b has.
func (s *stage) unchanged(tb testing.TB) ([]cluster.Change, cluster.Fence) {
	tb.Helper()
	read, err := s.sessions["b"].Read(tb.Context())
	ok(tb, err)
	var changes []cluster.Change
	for _, slot := range read.Slots {
		at, positioned := slot.Position()
		if !positioned || slot.Marker == nil || slot.Marker.Kind != cluster.MarkMirror {
			continue
		}
		changes = append(changes, cluster.Change{
			Name: slot.Name, Plugin: slot.Plugin, DatabaseOID: slot.DatabaseOID, TwoPhase: slot.TwoPhase,
			TwoPhaseAt: slot.TwoPhaseAt, Position: at, Source: slot.Marker.Source,
		})
	}
	if len(changes) != slots {
		tb.Fatalf("b has %d mirrors, want %d", len(changes), slots)
	}
	return changes, read.Node.Fence.V
}

// apply makes the call and wants one code for all.
func (s *stage) apply(tb testing.TB, f cluster.Fence, changes []cluster.Change, want cluster.Code) {
	tb.Helper()
	out, err := standby.Apply(tb.Context(), s.sessions["b"], f, changes, plan.DefaultMaxWalk)
	ok(tb, err)
	if len(out) != len(changes) {
		tb.Fatalf("%d changes have %d rows", len(changes), len(out))
	}
	for _, row := range out {
		if row.Code != want {
			tb.Fatalf("slot %s is %s (%s), want %s", row.Name, row.Code, row.Detail, want)
		}
	}
}

func one[T any](tb testing.TB, s *postgres.Session, sql string) (value T) {
	tb.Helper()
	ok(tb, s.Query(tb.Context(), "asking", sql, func(rows pgx.Rows) error { return rows.Scan(&value) }))
	return value
}

// files gives what lies under the slots' folder and beside the snapshots, each
// with the moment of its last change and its inode's.
func (s *stage) files(tb testing.TB) map[string]string {
	tb.Helper()
	found := map[string]string{}
	for _, folder := range []string{"pg_replslot", "pg_logical/snapshots"} {
		ok(tb, filepath.Walk(filepath.Join(s.b.DataDir(), folder), func(path string, info os.FileInfo, err error) error {
			if err == nil {
				found[path] = fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
			}
			return err
		}))
	}
	return found
}

func (s *stage) sameFiles(tb testing.TB, before map[string]string) {
	tb.Helper()
	after := s.files(tb)
	changed := 0
	for path, was := range before {
		if after[path] != was {
			changed++
		}
	}
	if changed > 0 || len(after) != len(before) {
		tb.Errorf("%d of %d files were written, %d are there now", changed, len(before), len(after))
	}
}

// memory of a backend: what its contexts hold, in bytes, which a server tells
// from 14 on, and the most that the process ever had in memory.
type memory struct {
	contexts cluster.Opt[int64]
	peak     int64
}

func (s *stage) memory(tb testing.TB) memory {
	tb.Helper()
	session := s.sessions["b"]
	pid := one[int64](tb, session, "SELECT pg_backend_pid()::bigint")
	var m memory
	if one[bool](tb, session, "SELECT current_setting('server_version_num')::int >= 140000") {
		m.contexts = cluster.Some(one[int64](tb, session, "SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts"))
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	ok(tb, err)
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			ok(tb, err)
			m.peak = kib << 10
		}
	}
	return m
}

// A thousand slots that have not moved are one call, which writes nothing and
// leaves no memory behind.
func TestUnchangedSlotsCostNoWrite(t *testing.T) {
	s := begin(t)
	changes, fence := s.unchanged(t)
	s.apply(t, fence, changes, cluster.CodeUnchanged)
	files, before := s.files(t), s.memory(t)
	for range 20 {
		s.apply(t, fence, changes, cluster.CodeUnchanged)
	}
	after := s.memory(t)
	s.sameFiles(t, files)
	t.Logf("memory contexts %d bytes, then %d; peak %d, then %d", before.contexts.V, after.contexts.V, before.peak, after.peak)
	if grown := after.contexts.V - before.contexts.V; grown > 256<<10 {
		t.Errorf("20 calls left %d bytes behind", grown)
	}
	if grown := after.peak - before.peak; grown > 4<<20 {
		t.Errorf("20 calls took %d bytes more at their peak than one", grown)
	}
}

// A cycle in which nothing moved is reads and nothing else.
func TestUnchangedCycleIsOnlyReads(t *testing.T) {
	s := begin(t)
	files := s.files(t)
	p, seen := s.loop.Plan(t.Context())
	for _, step := range p.Steps {
		if step.Kind != plan.StepFence {
			t.Errorf("step %s (%s) has %d changes and %d names", step.ID, step.Why, len(step.Changes), len(step.Names))
		}
	}
	if len(seen.Snapshots) > 0 || len(seen.Walks) > 0 {
		t.Errorf("%d snapshot files and %d walks were fetched again", len(seen.Snapshots), len(seen.Walks))
	}
	s.sameFiles(t, files)
}

// Of a move of confirmed_flush_lsn alone only memory knows until the next
// restartpoint. It leaves the mirrors beyond their slots: the last of these tests.
func TestConfirmedAloneCostsNoWrite(t *testing.T) {
	s := begin(t)
	ok(t, s.a.Exec(t.Context(), "INSERT INTO t VALUES (1)"))
	ok(t, s.b.WaitCatchup(t.Context(), s.a))
	changes, fence := s.unchanged(t)
	read, err := s.sessions["b"].Read(t.Context())
	ok(t, err)
	files := s.files(t)
	for i := range changes {
		changes[i].Position.Confirmed = read.Node.Replay.V
	}
	s.apply(t, fence, changes, cluster.CodeMoved)
	s.sameFiles(t, files)
	moved, _ := s.unchanged(t)
	for _, c := range moved {
		if c.Position.Confirmed != read.Node.Replay.V {
			t.Fatalf("mirror %s is at %s", c.Name, c.Position.Confirmed)
		}
	}
}

func BenchmarkUnchangedApply(b *testing.B) {
	s := begin(b)
	changes, fence := s.unchanged(b)
	defer inMillis(b, s.sessions["b"])()
	for b.Loop() {
		s.apply(b, fence, changes, cluster.CodeUnchanged)
	}
}

func BenchmarkReadOfStandby(b *testing.B) { benchmarkRead(b, "b") }
func BenchmarkReadOfPrimary(b *testing.B) { benchmarkRead(b, "a") }

func benchmarkRead(b *testing.B, node string) {
	session := begin(b).sessions[node]
	defer inMillis(b, session)()
	for b.Loop() {
		_, err := session.Read(b.Context())
		ok(b, err)
	}
}

func BenchmarkUnchangedCycle(b *testing.B) {
	s := begin(b)
	defer inMillis(b)()
	for b.Loop() {
		_, err := s.loop.Cycle(context.Background())
		ok(b, err)
	}
}

// inMillis reports, when what it gives is called, the time per round, and the
// processor's time that this process and these sessions' backends took for it:
// that is the same on a busy machine.
func inMillis(b *testing.B, sessions ...*postgres.Session) func() {
	own, backends := ownTime(b), backendTime(b, sessions)
	return func() {
		per := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) / float64(b.N) }
		b.ReportMetric(per(b.Elapsed()), "ms/op")
		b.ReportMetric(per(ownTime(b)-own), "client-cpu-ms/op")
		if len(sessions) > 0 {
			b.ReportMetric(per(backendTime(b, sessions)-backends), "backend-cpu-ms/op")
		}
	}
}

func ownTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	ok(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func backendTime(tb testing.TB, sessions []*postgres.Session) (total time.Duration) {
	tb.Helper()
	for _, s := range sessions {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", one[int64](tb, s, "SELECT pg_backend_pid()::bigint")))
		ok(tb, err)
		onCPU, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		ok(tb, err)
		total += time.Duration(onCPU)
	}
	return total
}
