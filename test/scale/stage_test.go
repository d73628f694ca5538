package scale

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
	"github.com/slotkeeper/slotkeeper/controller"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// slots is how many logical slots the primary has.
const slots = 1000

// stage is the primary with its slots and a standby with their mirrors. It is
// set once for all tests and benchmarks.
type stage struct {
	lab      *lab.Cluster
	a, b     *lab.Node
	loop     *controller.Controller
	sessions map[string]*postgres.Session
}

var set struct {
	once  sync.Once
	stage *stage
	err   error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if set.stage != nil {
		if err := set.stage.close(); err != nil {
			fmt.Fprintln(os.Stderr, "closing the lab:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func begin(tb testing.TB) *stage {
	tb.Helper()
	set.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		set.stage = &stage{sessions: map[string]*postgres.Session{}}
		set.err = set.stage.build(ctx)
	})
	ok(tb, set.err)
	return set.stage
}

func ok(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (s *stage) close() error {
	if s.loop != nil {
		s.loop.Close()
	}
	for _, session := range s.sessions {
		session.Close()
	}
	if s.lab == nil {
		return nil
	}
	return s.lab.Close()
}

func (s *stage) build(ctx context.Context) error {
	bin, err := serverPrograms()
	if err != nil {
		return err
	}
	// Nothing writes but what the tests do: no checkpoint saves a slot by the way.
	settings := harness.Still()
	settings["max_replication_slots"] = strconv.Itoa(slots + 100)
	if s.lab, err = lab.NewCluster(ctx, lab.Options{BinDir: bin, Settings: settings}); err != nil {
		return err
	}
	if s.a, err = s.lab.AddPrimary(ctx, "a"); err != nil {
		return err
	}
	if err := lab.SetupRole(ctx, s.a); err != nil {
		return err
	}
	if s.b, err = s.lab.AddStandby(ctx, "b", s.a, lab.StandbyOptions{}); err != nil {
		return err
	}
	if err := s.makeSlots(ctx); err != nil {
		return err
	}
	for _, n := range []*lab.Node{s.a, s.b} {
		if s.sessions[n.Name()], err = postgres.New(s.member(n), sessionOptions()); err != nil {
			return err
		}
	}
	return s.mirror(ctx)
}

// serverPrograms is the folder of the server of the major under test.
func serverPrograms() (string, error) {
	major := lab.DefaultMajor
	if text := os.Getenv(harness.MajorVariable); text != "" {
		var err error
		if major, err = strconv.Atoi(text); err != nil {
			return "", fmt.Errorf("reading %s: %w", harness.MajorVariable, err)
		}
	}
	return lab.FindPG(major)
}

// makeSlots makes one slot and copies it: each slot of its own making would
// wait for a consistent point.
func (s *stage) makeSlots(ctx context.Context) error {
	return s.a.Exec(ctx, fmt.Sprintf(`SELECT pg_create_logical_replication_slot('s0000', 'test_decoding');
		SELECT count(pg_copy_logical_replication_slot('s0000', 's' || lpad(i::text, 4, '0'))) FROM generate_series(1, %d) i;
		CREATE TABLE t (id int)`, slots-1))
}

func (s *stage) member(n *lab.Node) cluster.Member {
	return cluster.Member{Name: n.Name(), Conninfo: fmt.Sprintf("host=127.0.0.1 port=%d", n.Port())}
}

func sessionOptions() postgres.Options {
	return postgres.Options{User: lab.RoleName, DBName: "postgres", SSLMode: "disable", QueryTimeout: 30 * time.Second}
}

// mirror runs cycles until each slot has a mirror on b that is SAFE, and nothing
// is left to do.
func (s *stage) mirror(ctx context.Context) error {
	s.loop = controller.New(controller.Config{
		Policy:      plan.Policy{Scope: "lab", Owner: "lab", Include: []plan.Match{{Name: "*"}}},
		Interval:    time.Second,
		ReadTimeout: 30 * time.Second, CycleTimeout: 2 * time.Minute,
	}, controller.Deps{Source: s, Dial: dial})
	if err := s.loop.Begin(ctx, term{}); err != nil {
		return err
	}
	for {
		if _, err := s.loop.Cycle(ctx); err != nil {
			return err
		}
		doc, _ := s.loop.Status()
		if len(doc.Slots) == slots && doc.AllSafe() {
			if p, _ := s.loop.Plan(ctx); len(p.Steps) == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d slots to be SAFE, %d are known, members %+v, conditions %+v: %w", slots, len(doc.Slots), doc.Members, doc.Conditions, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
