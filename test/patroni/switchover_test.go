//go:build patroni

package patroni

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// document reads what a switchover has printed.
func (s *scene) document(r harness.Result) switchover.Result {
	s.T.Helper()
	var doc switchover.Result
	if err := json.Unmarshal([]byte(r.Stdout), &doc); err != nil {
		s.T.Fatalf("%v in %+v", err, r)
	}
	return doc
}

// switchover runs the command and wants its exit code and outcome.
func (s *scene) switchover(code int, outcome switchover.Outcome, args ...string) switchover.Result {
	s.T.Helper()
	r := s.Slotkeeper(append([]string{"switchover", "-o", "json"}, args...)...)
	s.T.Logf("switchover %s: %d\n%s", strings.Join(args, " "), r.Code, r.Stderr)
	doc := s.document(r)
	if r.Code != code || doc.Outcome != outcome {
		s.T.Fatalf("want %d %s: %+v", code, outcome, r)
	}
	return doc
}

// requests counts how often any Patroni was asked for a switchover.
func (s *scene) requests() int {
	n := 0
	for _, m := range s.p.Members() {
		n += strings.Count(m.LogTail(1<<20), "received switchover request")
	}
	return n
}

// forgotten wants no record of a switchover to be left.
func (s *scene) forgotten() {
	s.T.Helper()
	if text := s.record(); text != "" {
		s.T.Errorf("the record is left: %s", text)
	}
}

// A switchover under a live consumer loses nothing, twice, there and back.
func TestSwitchoverUnderALiveConsumer(t *testing.T) {
	t.Parallel()
	s := begin(t, map[string]any{"ignore_slots": covering()})
	major, err := lab.PatroniMajor(s.p.Version())
	s.OK(err)
	if major >= 17 { // with the failover flag
		s.Exec(s.leader().Node(), "SELECT pg_create_logical_replication_slot('idle', 'test_decoding', false, false, true)")
	} else {
		s.Logical(s.leader().Node(), "idle")
	}
	s.run()
	s.safe("cdc", "idle")
	life := s.live()
	s.goesOn(life)
	from := s.leader()

	r := s.Slotkeeper("switchover", "-o", "json")
	if doc := s.document(r); r.Code != 3 || doc.Outcome != switchover.OutcomeDeclined || !strings.Contains(r.Stderr, "--yes") {
		t.Errorf("without anybody to ask: %+v", r)
	}
	if doc := s.switchover(0, switchover.OutcomeReady, "--dry-run"); doc.To == "" || doc.To == from.Name() || doc.Why == "" {
		t.Errorf("%+v", doc)
	}
	if s.requests() != 0 || s.leader() != from {
		t.Error("it was asked without leave")
	}

	to := s.p.Others(from)[1]
	doc := s.switchover(0, switchover.OutcomeDone, "--yes", "--to", to.Name())
	s.done(doc, from.Name(), to.Name())
	flagged := func() {
		t.Helper()
		if major >= 17 && s.Text(s.leader().Node(), "SELECT failover FROM pg_replication_slots WHERE slot_name = 'idle'") != "true" {
			t.Error("the failover flag is not set again")
		}
	}
	flagged()
	s.goesOn(life)
	doc = s.switchover(0, switchover.OutcomeDone, "--yes")
	if doc.From != to.Name() || doc.Resumed {
		t.Errorf("%+v", doc)
	}
	s.done(doc, to.Name(), doc.To)
	flagged()
	s.goesOn(life)
	if n := s.requests(); n != 2 {
		t.Errorf("Patroni was asked %d times", n)
	}
	s.account(life)
}

// done wants a document to tell of a whole switchover.
func (s *scene) done(doc switchover.Result, from, to string) {
	s.T.Helper()
	if doc.From != from || doc.To != to || doc.Leader != to || s.leader().Name() != to {
		s.T.Errorf("from %s to %s: %+v", from, to, doc)
	}
	if !doc.TimelineAfter.OK || doc.TimelineAfter.V <= doc.TimelineBefore.V || !doc.Fork.OK || !doc.OldPrimary.OK || !doc.OldPrimary.V.Safe || doc.OldPrimary.V.Role != "standby" {
		s.T.Errorf("%+v", doc)
	}
	if len(doc.Slots) == 0 {
		s.T.Error("no slot was looked at")
	}
	for _, slot := range doc.Slots {
		if !slot.Usable || slot.FailoverPending || !slot.Duplicates.OK || !slot.Consumer.OK || !slot.Mirror.OK {
			s.T.Errorf("%+v", slot)
		}
	}
	s.T.Logf("without a primary for %.1f s; %s", doc.Outage.V, fmt.Sprint(doc.Slots))
	s.forgotten()
}

// record is what etcd keeps of a switchover under way, "" for nothing.
func (s *scene) record() string {
	s.T.Helper()
	client, err := s.p.Etcd().Client(s.Ctx)
	s.OK(err)
	defer func() { _ = client.Close() }()
	answer, err := client.Get(s.Ctx, "/slotkeeper/"+s.p.Scope()+"/switchover")
	s.OK(err)
	if len(answer.Kvs) == 0 {
		return ""
	}
	return string(answer.Kvs[0].Value)
}
