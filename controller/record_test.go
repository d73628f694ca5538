package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// D11: whatever flaps, a day's bytes are bounded, and what was held back is
// written once there is room.
func TestTheLedgersBytesAreBounded(t *testing.T) {
	b, now, written, held := budget{}, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), 0.0, 0
	parts := map[string][]byte{"slots/00": make([]byte, 60<<10), "slots/01": make([]byte, 60<<10)}
	for range 24 * 60 * 60 { // a write of 120 KB in each second of a day
		now = now.Add(time.Second)
		if !b.allows(parts, now, 0) {
			held++
			continue
		}
		b.spend(parts, now)
		written += cost(parts)
	}
	if most := float64(BudgetPerDay + budgetBurst); written > most || written < most*0.9 || held == 0 {
		t.Errorf("%.0f MB were written in a day, %d times it was held back", written/(1<<20), held)
	}
	large := map[string][]byte{"slots/00": make([]byte, 2*budgetBurst)}
	if b.allows(large, now, 0) {
		t.Error("more than a full bucket goes while it is empty")
	}
	if !b.allows(large, now.Add(24*time.Hour), 0) {
		t.Error("what is larger than a full bucket is never written")
	}
}

// The states of a scene are as many parts as they have to be, all of one write.
func TestTheLedgerIsOneWrite(t *testing.T) {
	s := newStage(t)
	s.cycle(t)
	for _, part := range []string{status.PartCluster, status.PartStandbys} {
		if s.term.parts[part] == nil {
			t.Errorf("there is no part %s", part)
		}
	}
	var whole struct {
		Version    int
		Conditions []status.Finding
		Memory     struct{ Reigns []plan.Reign }
	}
	if err := json.Unmarshal(s.term.parts[status.PartCluster], &whole); err != nil {
		t.Fatal(err)
	}
	if whole.Version != 1 || len(whole.Memory.Reigns) != 1 || whole.Memory.Reigns[0].Primary != "a" {
		t.Errorf("the part is %s", s.term.parts[status.PartCluster])
	}
	for _, f := range whole.Conditions {
		if f.Message == "" {
			t.Errorf("condition %s has no message", f.Code)
		}
	}
}

// D11: before half of etcd's quota it is said, from half on nothing is written,
// and mirrors are kept all the same.
func TestAFullEtcdIsSpared(t *testing.T) {
	s := newStage(t)
	for name, n := range s.nodes {
		n.read.Slots = append(n.read.Slots, fakeHold(name))
	}
	s.cycle(t)
	s.cycle(t) // of a new generation it is told in any case: safety needs that
	shown := func() plan.Severity {
		doc, _ := s.c.Status()
		for _, f := range doc.Conditions {
			if f.Code == CodeEtcdSpace {
				return f.Severity
			}
		}
		return ""
	}
	for _, c := range []struct {
		used  int64
		want  plan.Severity
		wrote bool
	}{{12, "", true}, {13, plan.Warning, true}, {16, plan.Critical, false}, {40, plan.Critical, false}, {12, "", true}} {
		s.c.space.Store(&Space{Used: c.used << 20, Quota: 32 << 20})
		slot := fakeSlot(fmt.Sprintf("new%d%s", c.used, c.want)) // a transition
		s.nodes["a"].mu.Lock()
		s.nodes["a"].read.Slots = append(s.nodes["a"].read.Slots, slot)
		s.nodes["a"].mu.Unlock()
		before := len(s.term.writes)
		s.cycle(t)
		if got := shown(); got != c.want {
			t.Errorf("at %d of 32 MB: %q, want %q", c.used, got, c.want)
		}
		if wrote := len(s.term.writes) > before; wrote != c.wrote {
			t.Errorf("at %d of 32 MB: written %t", c.used, wrote)
		}
	}
}

// shelf is an elector whose ledger is what it is, and that counts campaigns.
type shelf struct {
	parts    map[string][]byte
	campaign chan struct{}
}

func (s shelf) Load(context.Context) (map[string][]byte, error) { return s.parts, nil }

func (s shelf) Campaign(ctx context.Context) (Term, error) {
	s.campaign <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A newer program's ledger, or a torn one, is neither written nor led over, and that is said.
func TestALedgerThatNoTermCanBeginWithIsReadOnly(t *testing.T) {
	for text, code := range map[string]string{
		`{"version":2,"slots":[]}`: CodeLedgerNewer,
		`{"version":1,"slots":{"c`: CodeLedgerUnreadable,
		"\x1f\x8b\x08\x00torn":     CodeLedgerUnreadable,
	} {
		s := newStage(t)
		ctx, cancel := context.WithCancel(t.Context())
		elect := shelf{parts: map[string][]byte{"positions/07": []byte(text)}, campaign: make(chan struct{}, 1)}
		s.c.deps.Elector = elect
		s.c.cfg.Interval = time.Millisecond
		ended := make(chan error, 1)
		go func() { ended <- s.c.Run(ctx) }()
		said := func() bool {
			doc, _ := s.c.Status()
			return findingOf(doc, code).Severity == plan.Critical && doc.Leader.Name == ""
		}
		for deadline := time.Now().Add(time.Minute); !said(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q: it is not said", text)
			}
		}
		select {
		case <-elect.campaign:
			t.Errorf("%q: it stands for leadership", text)
		default:
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestWhatASlotHasSentIsRemembered(t *testing.T) {
	s := newStage(t)
	s.nodes["a"].read.Walsenders = []cluster.Walsender{{SlotName: "cdc", Sent: cluster.Some(cluster.LSN(5000))}}
	s.cycle(t)
	s.nodes["a"].mu.Lock()
	s.nodes["a"].read.Walsenders = nil
	s.nodes["a"].mu.Unlock()
	s.cycle(t)
	if got := s.c.memory.Slots["cdc"].HighestSent; got != 5000 {
		t.Errorf("it is %s", got)
	}
}

// An etcd over its quota answers reads, keeps leases alive and takes no writes:
// mirrors move on, and whoever looks is told what the ledger lacks, once.
func TestALedgerThatCannotBeWrittenIsShown(t *testing.T) {
	var log words
	s := newStage(t)
	s.c.deps.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
	for name, n := range s.nodes {
		n.obeys(name, func() {})
	}
	s.cycle(t)
	s.term.fail = errors.New("etcd is out of space")
	s.nodes["c"].err = errors.New("no route to c") // something to write
	first := s.cycle(t)
	doc := s.cycle(t)
	if !hasFinding(doc, CodeLedgerUnwritten, "out of space") {
		t.Fatalf("conditions %+v", doc.Conditions)
	}
	if told, again := findingOf(first, CodeLedgerUnwritten), findingOf(doc, CodeLedgerUnwritten); !told.Since.Equal(again.Since) {
		t.Errorf("it began at %s, then at %s", told.Since, again.Since)
	}
	if p := pairOf(doc, "cdc", "b"); p.Verdict != plan.Safe {
		t.Errorf("b is %+v", p)
	}
	if times := strings.Count(log.text.String(), "out of space"); times != 1 {
		t.Errorf("it was logged %d times:\n%s", times, log.text.String())
	}
	s.term.fail = nil
	s.c.recordLast()
	s.c.ledger.generation = 0
	if err := s.c.rememberFirst(t.Context(), s.c.memory); err != nil {
		t.Fatal(err)
	}
	if text := string(s.term.parts[status.PartCluster]); strings.Contains(text, CodeLedgerUnwritten) {
		t.Errorf("the ledger says of itself that it could not be written: %s", text)
	}
	if doc = s.cycle(t); hasFinding(doc, CodeLedgerUnwritten, "") {
		t.Error("it is shown after a good write")
	}
	if s.term.end(); len(s.c.notRecorded(errors.New("not the leader any more"))) != 0 {
		t.Error("a ledger that is a successor's now is told of")
	}
}

func findingOf(doc status.Status, code string) status.Finding {
	for _, f := range doc.Conditions {
		if f.Code == code {
			return f
		}
	}
	return status.Finding{}
}
