package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D24: a session of a standby that looked at the catalogs before the hold was there
// believes from then on that nobody needs their old rows (from 14 on), and removes
// them once the standby is promoted. No mirror is made that needs them while that
// session lives; up to 13 sessions look anew.
func TestD24SessionOlderThanTheHold(t *testing.T) {
	t.Parallel()
	s, want := outdatedBeforeTheHold(t)
	old := s.Session(s.B)
	lookAround(old)
	s.Run()
	if harness.Major(t) < 14 {
		s.Safe([]string{"cdc"})
		s.FailOver(s.B)
		lookAround(old)
		s.Same(s.Peek(s.B, "cdc"), want)
		return
	}
	v := s.Verdict("cdc", s.B, plan.Pending, plan.ReasonOldSession)
	if !strings.Contains(v.Message, fmt.Sprint(old.PID())) || s.Has(s.B, "cdc") {
		t.Errorf("a mirror is there (%v), or the session %d is not named: %s", s.Has(s.B, "cdc"), old.PID(), v.Message)
	}
	old.Close()
	s.Safe([]string{"cdc"})

	young := s.Session(s.B)
	lookAround(young)
	s.FailOver(s.B)
	lookAround(young)
	s.Same(s.Peek(s.B, "cdc"), want)
}

// D24: where that is wanted, such a session is ended, if it is idle and of a role
// whose sessions the controller may end.
func TestD24OldSessionsAreEnded(t *testing.T) {
	t.Parallel()
	s, want := outdatedBeforeTheHold(t)
	idle := s.SessionOf(s.B, lab.RoleName)
	lookAround(idle)
	s.Run("protection: {old_sessions: manage}\n")
	s.Safe([]string{"cdc"})
	if ends := harness.Major(t) >= 14; s.Backend(s.B, idle.PID()) == ends {
		t.Errorf("session %d: ended %v, want %v", idle.PID(), !ends, ends)
	}
	s.FailOver(s.B)
	s.Same(s.Peek(s.B, "cdc"), want)
}

// D24: where no catalog row has died since the slot began, that session can do no harm.
func TestD24NothingOutdatedBeforeTheHold(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.Exec(s.A, "CREATE TABLE other (id int, body int)")
	s.Exec(s.A, "INSERT INTO other SELECT i, i FROM generate_series(1, 100) i")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	old := s.Session(s.B)
	lookAround(old)
	s.Run()
	s.Safe([]string{"cdc"})

	survives(s, old)
}

// D24: a slot that was made after the hold is not in that danger, whoever is there.
func TestD24SlotYoungerThanTheHold(t *testing.T) {
	t.Parallel()
	s, _ := outdatedBeforeTheHold(t)
	old := s.Session(s.B)
	lookAround(old)
	s.Exec(s.A, "SELECT pg_drop_replication_slot('cdc')")
	s.Logical(s.A, "first")
	s.Run()
	s.Safe([]string{"first"})

	s.Logical(s.A, "cdc")
	s.SafeWithin(2, "cdc", s.B)
	s.Exec(s.A, "DROP TABLE t; CREATE TABLE t (id int)")
	survives(s, old)
}

// D24: a session that outlives the promotion of b may remove what no slot of b needs,
// b's mirror being beyond it, and what the mirror of c, which lags, still does. When c
// is promoted in turn, nobody finds that mirror.
func TestD24LaggingMirrorOfAnotherStandby(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2, Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.OK(s.C.WaitCatchup(s.Ctx, s.A))
	s.Exec(s.C, "SELECT pg_wal_replay_pause()") // for good: its mirror stays where the slot began
	want := outdate(s)
	old := s.Session(s.B)
	lookAround(old)
	s.Run()
	remembers := harness.Major(t) >= 14
	if remembers {
		s.Verdict("cdc", s.B, plan.Pending, plan.ReasonOldSession)
	}
	s.Safe([]string{"cdc"}, s.C)
	s.Same(s.Get(s.A, "cdc"), want)
	s.Pass(s.A, "cdc")
	s.Mirrored("cdc", s.B)
	s.Safe([]string{"cdc"}, s.B)
	s.Level()

	s.FailOver(s.B)
	s.Leads(s.B)
	s.OK(s.C.Follow(s.Ctx, s.A))
	lookAround(old)
	s.Verdict("cdc", s.C, plan.Unsafe, plan.ReasonTimelineMismatch)
	s.FreezeDaemon() // nothing moves or drops the mirror while c replays the rest
	s.Exec(s.C, "SELECT pg_wal_replay_resume()")
	s.OK(s.C.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.C)
	s.Leads(s.C)
	if !remembers {
		s.Same(s.Peek(s.A, "cdc")[:len(want)], want)
	}
	s.ThawDaemon()
	if !remembers {
		s.Cycles(3)
		s.Same(s.Peek(s.A, "cdc")[:len(want)], want)
		return
	}
	s.Wait("the unproven slot to go", func() (bool, string) { return !s.Has(s.A, "cdc"), "it is still there" })
	if missing := s.Condition(plan.CondSlotMissing); missing.Subject != "cdc" {
		t.Errorf("slot %q is missing", missing.Subject)
	}
}

// survives outdates catalog rows under the hold, and wants all to be decoded after a
// failover that the session lives through.
func survives(s *harness.Scene, old *harness.Session) {
	s.Reshape(s.A)
	s.Churn(s.A)
	want := s.Peek(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	lookAround(old)
	s.FailOver(s.B)
	lookAround(old)
	s.Same(s.Peek(s.B, "cdc"), want)
}

// outdatedBeforeTheHold has a slot whose catalog rows are outdated before the
// controller begins, and gives what it would send.
func outdatedBeforeTheHold(t *testing.T) (*harness.Scene, []string) {
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	return s, outdate(s)
}

func outdate(s *harness.Scene) []string {
	s.Reshape(s.A)
	s.Churn(s.A)
	want := s.Peek(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	return want
}

// lookAround has a session come across old rows of the catalogs, by their indexes.
func lookAround(session *harness.Session) {
	session.Exec("SET enable_seqscan = off; SET enable_bitmapscan = off")
	session.Exec("SELECT count(*) FROM pg_class WHERE relname IN ('churn', 't')")
	session.Exec("SELECT count(*) FROM pg_attribute WHERE attrelid > 16000")
	session.Exec("SELECT count(*) FROM pg_class WHERE oid > 0")
}
