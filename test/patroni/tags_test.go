//go:build patroni

package patroni

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// C37: a member behind another one. Its mirror is SAFE like any other's, its physical
// slot is looked for where it streams from, it goes on when that member dies, and
// either of them may follow the leader.
func TestC37MemberBehindAnother(t *testing.T) {
	t.Parallel()
	s := gated(t)
	life := s.live()
	s.goesOn(life)
	others := s.p.Others(s.leader())
	middle, last := others[0], others[1]
	s.tag(last, map[string]any{"replicatefrom": middle.Name()}, `"replicatefrom":"`+middle.Name()+`"`)
	s.streams(last, middle)
	s.safe("cdc")
	s.untold(plan.CondPhysicalSlotMissing)
	for _, m := range others {
		if r := s.Slotkeeper("gate", "--dry-run", "--node", m.Name()); r.Code != 0 || !strings.Contains(r.Stderr, "can serve 1 slot") {
			t.Errorf("%s: %+v", m.Name(), r)
		}
	}

	s.in(middle.Kill)
	s.streams(last, s.leader())
	s.pair("cdc", last.Name(), plan.Safe, "")
	s.in(middle.Start)
	s.in(middle.WaitReady)
	s.streams(last, middle)
	s.safe("cdc")
	s.goesOn(life)

	// Nobody waits for the last one to have received all: its walreceiver goes on.
	var dead, next *lab.PatroniMember
	s.in(func(ctx context.Context) (err error) {
		dead, next, err = s.p.FailOver(ctx)
		return err
	})
	t.Logf("%s was killed, %s leads", dead.Name(), next.Name())
	s.goesOn(life)
	s.back(failover{dead: dead})
	s.safe("cdc")
	s.untold(plan.CondPhysicalSlotMissing)
	s.account(life)
}

// streams waits until a member's server streams from another one's.
func (s *scene) streams(from, to *lab.PatroniMember) {
	s.T.Helper()
	s.until(from.Name()+" to stream from "+to.Name(), func() (bool, string) {
		port := s.Text(from.Node(), "SELECT max(sender_port) FROM pg_stat_wal_receiver WHERE status = 'streaming'")
		return port == fmt.Sprint(to.Node().Port()), "it streams from port " + port
	})
}

// C37: of two that have received the same Patroni takes the one with the higher
// failover_priority, from 3.2 on; before, the tag means nothing to it. The gate refuses
// nobody in favour of a member that would not be taken.
func TestC37FailoverPriority(t *testing.T) {
	t.Parallel()
	s := gated(t)
	others := s.p.Others(s.leader())
	unsafe, safe := others[0], others[1]
	heeded := s.p.Version() != lab.DefaultPatroni && s.p.Version() != ""
	s.tag(unsafe, map[string]any{"nofailover": nil, "failover_priority": 2}, `"failover_priority":2`)
	s.safe("cdc")
	s.obstruct(unsafe)
	s.write(1, 5, others...)
	ask := func() (code int, says string) {
		r := s.Slotkeeper("gate", "--dry-run", "--node", unsafe.Name())
		return r.Code, r.Stderr
	}
	code, says := ask()
	if heeded && (code != 0 || !strings.Contains(says, safe.Name()+": its failover_priority is 1, this node's 2")) {
		t.Errorf("%d: %s", code, says)
	}
	if !heeded && (code != 3 || !strings.Contains(says, safe.Name()+" loses nothing")) {
		t.Errorf("%d: %s", code, says)
	}
	// Now the safe one would be taken first.
	s.tag(safe, map[string]any{"nofailover": nil, "failover_priority": 3}, `"failover_priority":3`)
	if code, says := ask(); code != 3 || !strings.Contains(says, safe.Name()+" loses nothing") {
		t.Errorf("%d: %s", code, says)
	}
	f := s.failover()
	want := safe
	if f.received[unsafe.Name()] > f.received[safe.Name()] {
		want = unsafe
	}
	if f.leader != want || heeded && want == safe && len(f.answers) != 1 {
		t.Errorf("%s leads, want %s: %+v", f.leader.Name(), want.Name(), f)
	}
	s.clear(unsafe)
	if want == unsafe {
		s.Logical(unsafe.Node(), "cdc")
	} else if got := strings.Join(s.Peek(safe.Node(), "cdc"), "\n"); strings.Count(got, "INSERT") != 5 {
		t.Errorf("what was not confirmed does not come: %s", got)
	}
	s.back(f)
	s.safe("cdc")
	// The one of 0 is no candidate where the tag is heeded.
	none := s.p.Others(s.leader())[0]
	s.tag(none, map[string]any{"nofailover": nil, "failover_priority": 0}, `"failover_priority":0`)
	r := s.Slotkeeper("switchover", "--dry-run", "--to", none.Name())
	if heeded && (r.Code != 3 || !strings.Contains(r.Stdout+r.Stderr, "nofailover")) || !heeded && r.Code != 0 {
		t.Errorf("%+v", r)
	}
}

// C37: a member that takes its WAL from the archive alone (nostream, from 4.0 on) has no
// physical slot and is behind by what is not archived yet: its mirror is there and SAFE
// for what the consumer has confirmed, once that has been replayed. Up to 3.x the tag
// means nothing, and the member streams.
func TestC37MemberThatDoesNotStream(t *testing.T) {
	t.Parallel()
	archive, err := os.MkdirTemp("", "archive") // of the servers' user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(archive) })
	if err := os.Chmod(archive, 0o777); err != nil {
		t.Fatal(err)
	}
	s := gated(t, func(o *lab.PatroniOptions) {
		server := o.Config["postgresql"].(map[string]any)["parameters"].(map[string]any)
		server["archive_mode"], server["archive_command"] = "on", "cp %p "+filepath.Join(archive, "%f")
		server["restore_command"] = "cp " + filepath.Join(archive, "%f") + " %p"
	})
	silent := s.p.Others(s.leader())[0]
	s.tag(silent, map[string]any{"nostream": true}, `"nostream":true`)
	if s.p.Version() == lab.DefaultPatroni || s.p.Version() == "" {
		s.streams(silent, s.leader())
		s.safe("cdc")
		s.untold(plan.CondPhysicalSlotMissing)
		return
	}
	leader := s.leader()
	s.until(silent.Name()+" to stream no more", func() (bool, string) {
		return s.Text(silent.Node(), "SELECT count(*) FROM pg_stat_wal_receiver") == "0", "it streams"
	})
	archived := func() {
		t.Helper()
		at := s.Current(leader.Node())
		s.Exec(leader.Node(), "SELECT pg_switch_wal()")
		s.until("the archive to be replayed", func() (bool, string) {
			now := s.Text(silent.Node(), fmt.Sprintf("SELECT pg_last_wal_replay_lsn() >= '%s'", at))
			return now == "true", "it is not"
		})
	}
	// What is confirmed and not archived is not there, and a promotion would miss it.
	s.write(1, 5)
	s.Get(leader.Node(), "cdc")
	s.pair("cdc", silent.Name(), plan.Unsafe, plan.ReasonConsumerAhead)
	archived()
	s.safe("cdc")
	s.untold(plan.CondPhysicalSlotMissing)
	if r := s.Slotkeeper("switchover", "--dry-run", "--to", silent.Name()); r.Code != 3 || !strings.Contains(r.Stdout+r.Stderr, "does not stream") {
		t.Errorf("%+v", r)
	}
	// A slot that is new there, and one that is dropped.
	s.Logical(leader.Node(), "late")
	archived()
	s.safe("late")
	s.Exec(leader.Node(), "SELECT pg_drop_replication_slot('late')")
	s.until("the mirror of the dropped slot to go", func() (bool, string) { return !s.Has(silent.Node(), "late"), "it is there" })

	// The other one is promoted, and serves what was not confirmed.
	other := s.p.Others(leader)[1]
	s.write(6, 10, other)
	f := s.failover()
	if f.leader != other || f.refusals() != 0 {
		t.Fatalf("%s leads, want %s: %+v", f.leader.Name(), other.Name(), f)
	}
	if got := strings.Join(s.Peek(other.Node(), "cdc"), "\n"); strings.Count(got, "INSERT") != 5 {
		t.Errorf("what was not confirmed does not come: %s", got)
	}
	s.tag(silent, nil, "")
	s.back(f)
	s.safe("cdc")
}
