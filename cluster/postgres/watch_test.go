package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

type watched struct {
	cluster.Watched
	err error
}

func watch(ctx context.Context, s *Session, since string, target cluster.Opt[cluster.LSN]) <-chan watched {
	answer := make(chan watched, 1)
	go func() {
		told, err := s.Watch(ctx, since, target)
		answer <- watched{told, err}
	}()
	return answer
}

// begin gives the token of the node as it is.
func begin(t *testing.T, s *Session) string {
	t.Helper()
	told, err := s.Watch(patient(t), "", cluster.None[cluster.LSN]())
	if err != nil || !told.Changed || told.Token == "" {
		t.Fatalf("the first Watch gave %+v, %v", told, err)
	}
	return told.Token
}

func waiting(t *testing.T, admin *pgx.Conn, want int) {
	t.Helper()
	const sql = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'slotkeeper wait' AND wait_event_type = 'Extension'`
	eventually(t, strconv.Itoa(want)+" sessions that wait", func() bool { return value[int](t, admin, sql) == want })
}

// makeSlot makes one that goes with the test.
func makeSlot(t *testing.T, admin *pgx.Conn, name string) {
	t.Helper()
	exec1(t, admin, "SELECT pg_create_logical_replication_slot($1, 'test_decoding')", name)
	finally(t, admin, "SELECT pg_drop_replication_slot('"+name+"')")
}

func TestWatchReturnsWhenASlotMoves(t *testing.T) {
	admin := shared.admin(t, "postgres")
	s := session(t, shared.conninfo(""), superuser)
	answer := watch(patient(t), s, begin(t, s), cluster.None[cluster.LSN]())
	waiting(t, admin, 1)
	if got := value[int](t, admin, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'slotkeeper wait' AND backend_xmin IS NOT NULL`); got != 0 {
		t.Error("the waiting session holds a snapshot")
	}
	if _, err := s.Read(patient(t)); err != nil {
		t.Errorf("Read beside a waiting Watch gave %v", err)
	}
	makeSlot(t, admin, "watched")
	if got := <-answer; got.err != nil || !got.Changed || got.Reached {
		t.Errorf("Watch gave %+v after a slot was made", got)
	}
}

func TestWatchReturnsWhenATargetIsReached(t *testing.T) {
	s := session(t, shared.conninfo(""), superuser)
	token := begin(t, s)
	if told, err := s.Watch(patient(t), token, cluster.Some(cluster.LSN(1))); err != nil || told != (cluster.Watched{Token: token, Reached: true}) {
		t.Errorf("Watch of a position long past gave %+v, %v", told, err)
	}
}

// The token of a change that comes before the target is as good as any other.
func TestAWatchGoesOnToItsTargetAfterAChange(t *testing.T) {
	admin := shared.admin(t, "postgres")
	s := session(t, shared.conninfo(""), superuser)
	far := cluster.Some(cluster.LSN(1 << 60))
	answer := watch(patient(t), s, begin(t, s), far)
	waiting(t, admin, 1)
	makeSlot(t, admin, "before_target")
	got := <-answer
	if got.err != nil || !got.Changed || got.Reached {
		t.Fatalf("Watch gave %+v after a slot was made", got)
	}
	again := watch(patient(t), s, got.Token, far)
	waiting(t, admin, 1)
	exec1(t, admin, "SELECT pg_logical_emit_message(true, 'a', 'b')")
	exec1(t, admin, "SELECT count(*) FROM pg_logical_slot_get_changes('before_target', NULL, NULL)")
	if got = <-again; got.err != nil || !got.Changed {
		t.Fatalf("the next Watch gave %+v", got)
	}
	if told, err := s.Watch(patient(t), got.Token, cluster.Some(cluster.LSN(1))); err != nil || told != (cluster.Watched{Token: got.Token, Reached: true}) {
		t.Errorf("Watch of another position gave %+v, %v", told, err)
	}
}

func TestTheEndOfAWatchCostsNoConnection(t *testing.T) {
	admin := shared.admin(t, "postgres")
	s := session(t, shared.conninfo(""), superuser)
	token := begin(t, s)
	pid := s.parked.PgConn().PID()
	far := cluster.Some(cluster.LSN(1 << 60))
	for range 3 {
		ctx, cancel := context.WithCancel(patient(t))
		answer := watch(ctx, s, token, far)
		waiting(t, admin, 1)
		cancel()
		if got := <-answer; got.err != nil || got.Watched != (cluster.Watched{Token: token}) {
			t.Errorf("a Watch called back gave %+v", got)
		}
	}
	ended, cancel := context.WithCancel(patient(t))
	cancel()
	if told, err := s.Watch(ended, token, far); err != nil || told != (cluster.Watched{Token: token}) {
		t.Errorf("a Watch called back before it began gave %+v, %v", told, err)
	}
	if s.parked == nil || s.parked.PgConn().PID() != pid {
		t.Error("the connection is another one")
	}
}

func TestAWatchEndsByItsOwnLimit(t *testing.T) {
	o := superuser
	s := session(t, shared.conninfo(""), o)
	token := begin(t, s)
	s.opts.QueryTimeout = 10 * time.Millisecond
	if told, err := s.Watch(patient(t), token, cluster.None[cluster.LSN]()); err == nil && told != (cluster.Watched{Token: token}) {
		t.Errorf("Watch of a node where nothing moves gave %+v", told)
	}
}

func TestAWatchOfAStoppedBackendEndsByItsLimit(t *testing.T) {
	admin := shared.admin(t, "postgres")
	s := session(t, shared.conninfo(""), superuser)
	token := begin(t, s)
	pid := int(s.parked.PgConn().PID())
	s.opts.QueryTimeout = 100 * time.Millisecond
	ctx := patient(t)
	answer := watch(ctx, s, token, cluster.None[cluster.LSN]())
	waiting(t, admin, 1)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) })
	if got := <-answer; got.err == nil || ctx.Err() != nil {
		t.Errorf("Watch gave %+v, the test's own context %v; want an error by its limit", got, ctx.Err())
	}
	s.opts.QueryTimeout = superuser.QueryTimeout
	if _, err := s.Watch(ctx, "", cluster.None[cluster.LSN]()); err != nil {
		t.Errorf("the next Watch gave %v, want a new connection", err)
	}
}

func TestWorkTakesThePlaceOfAWatch(t *testing.T) {
	admin := shared.admin(t, "postgres")
	for name, during := range map[string]bool{"in a call": true, "between two calls": false} {
		t.Run(name, func(t *testing.T) {
			s := session(t, shared.conninfo(""), superuser)
			token := begin(t, s)
			answer := make(<-chan watched)
			if during {
				answer = watch(patient(t), s, token, cluster.None[cluster.LSN]())
				waiting(t, admin, 1)
			}
			busy, over := make(chan struct{}), make(chan struct{})
			var done [2]chan error
			for i := range done {
				done[i] = make(chan error, 1)
				go func() {
					done[i] <- s.do(patient(t), attempt{budget: time.Minute}, func(context.Context, *pgx.Conn) error {
						busy <- struct{}{}
						<-over
						return nil
					})
				}()
				<-busy // both get a connection at once
			}
			close(over)
			for _, d := range done {
				if err := <-d; err != nil {
					t.Errorf("work gave %v", err)
				}
			}
			if during {
				if got := <-answer; got.err == nil {
					t.Errorf("Watch gave %+v although its place was taken", got)
				}
			}
		})
	}
}

func TestCloseEndsAWatch(t *testing.T) {
	admin := shared.admin(t, "postgres")
	s := session(t, shared.conninfo(""), superuser)
	answer := watch(patient(t), s, begin(t, s), cluster.None[cluster.LSN]())
	waiting(t, admin, 1)
	s.Close()
	if got := <-answer; got.err == nil {
		t.Errorf("Watch of a closed session gave %+v", got)
	}
	waiting(t, admin, 0)
	if _, err := s.Watch(patient(t), "", cluster.None[cluster.LSN]()); !errors.Is(err, ErrClosed) {
		t.Errorf("Watch after Close gave %v, want ErrClosed", err)
	}
}

func TestAServerWithoutTheProcedureIsNamed(t *testing.T) {
	there := database(t, "without_wait", true)
	exec1(t, there, "ALTER EXTENSION slotkeeper DROP PROCEDURE slotkeeper.wait_for_change")
	exec1(t, there, "DROP PROCEDURE slotkeeper.wait_for_change")
	s := session(t, shared.conninfo("dbname=without_wait"), superuser)
	_, err := s.Watch(patient(t), "", cluster.None[cluster.LSN]())
	if err == nil || Classify(err) != ExtensionUnavailable || !strings.Contains(err.Error(), "wait_for_change") {
		t.Errorf("Watch gave %v", err)
	}
}
