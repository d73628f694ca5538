package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func (s *stage) cycle(t *testing.T) status.Status {
	t.Helper()
	if _, err := s.c.Cycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.shown(t)
}

func (s *stage) shown(t *testing.T) status.Status {
	t.Helper()
	doc, ok := s.c.Status()
	if !ok {
		t.Fatal("the cycle published nothing")
	}
	return doc
}

func pairOf(doc status.Status, slot, node string) status.Standby {
	for _, row := range doc.Slots {
		for _, p := range row.Standbys {
			if row.Name == slot && p.Node == node {
				return p
			}
		}
	}
	return status.Standby{}
}

func TestFenceComesBeforeEveryOtherStep(t *testing.T) {
	s := newStage(t)
	s.cycle(t)
	for name, n := range s.nodes {
		if kinds := n.kinds(); len(kinds) == 0 || kinds[0] != plan.StepFence {
			t.Errorf("node %s: steps %v, want the fence first", name, kinds)
		}
	}
}

func TestNothingIsWrittenAfterTheLeaseIsGone(t *testing.T) {
	s := newStage(t)
	s.nodes["a"].do = func(plan.Step) ([]cluster.Outcome, error) {
		s.term.end() // the lease passes while the primary is being written
		return nil, nil
	}
	s.cycle(t)
	if kinds := s.nodes["a"].kinds(); len(kinds) != 1 {
		t.Errorf("the primary was written %v, want one step only", kinds)
	}
	for _, name := range []string{"b", "c"} {
		for _, kind := range s.nodes[name].kinds() {
			if kind != plan.StepFence {
				t.Errorf("%s got a %s after the lease was gone", name, kind)
			}
		}
	}
}

func TestAFailedFenceStopsTheStepsOfItsNodeOnly(t *testing.T) {
	s := newStage(t)
	s.nodes["b"].do = func(step plan.Step) ([]cluster.Outcome, error) {
		return nil, errors.New("server closed the connection")
	}
	s.cycle(t)
	for _, kind := range s.nodes["b"].kinds() {
		if kind != plan.StepFence {
			t.Errorf("b got a %s although its fence failed", kind)
		}
	}
	if !slices.Contains(s.nodes["c"].kinds(), plan.StepHold) {
		t.Errorf("c got %v, want its hold too", s.nodes["c"].kinds())
	}
}

func TestAWalkThatFailsIsNotAskedForInEachCycle(t *testing.T) {
	s := newStage(t)
	s.c.cfg.Policy.Interval = time.Hour
	for range 3 {
		s.cycle(t)
	}
	if got := s.nodes["a"].walks; got != 1 {
		t.Errorf("the primary was asked for walks %d times within an interval, want 1", got)
	}
	if kinds := s.nodes["b"].kinds(); !slices.Contains(kinds, plan.StepHold) {
		t.Errorf("b got %v, want its hold all the same", kinds)
	}
}

func TestANodeThatHangsIsUnreachableAndTheOthersGoOn(t *testing.T) {
	s := newStage(t)
	s.nodes["b"].hang = true
	for range 3 {
		doc := s.cycle(t)
		if p := pairOf(doc, "cdc", "b"); p.Verdict != plan.Unknown || p.Reason != plan.ReasonUnreachable {
			t.Errorf("the hanging standby is %s %s", p.Verdict, p.Reason)
		}
	}
	if kinds := s.nodes["b"].kinds(); len(kinds) != 0 {
		t.Errorf("the hanging standby was written: %v", kinds)
	}
	if !slices.Contains(s.nodes["c"].kinds(), plan.StepHold) {
		t.Error("the other standby got nothing")
	}
}

func TestAPanicIsAFailedCycleAndNotTheEnd(t *testing.T) {
	s := newStage(t)
	dial := s.c.deps.Dial
	s.c.deps.Dial = func(cluster.Member) (Node, error) { panic("a bug") }
	if _, err := s.c.Cycle(t.Context()); err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("the panic gave %v", err)
	}
	s.c.deps.Dial = dial
	s.cycle(t)
}

func TestAPanicInAStepIsThatStepsFailure(t *testing.T) {
	s := newStage(t)
	s.nodes["b"].do = func(plan.Step) ([]cluster.Outcome, error) { panic("a bug") }
	s.cycle(t)
	if !slices.Contains(s.nodes["c"].kinds(), plan.StepHold) {
		t.Error("the other standby got nothing")
	}
}

func TestTheLedgerIsWrittenOnTransitionsOnly(t *testing.T) {
	s := newStage(t)
	for name, n := range s.nodes {
		n.read.Slots = append(n.read.Slots, fakeHold(name))
	}
	s.cycle(t)
	s.cycle(t)
	before := len(s.term.writes)
	for i := range 20 { // positions move, verdicts do not
		slot := fakeSlot("cdc")
		slot.Confirmed = cluster.Some(cluster.LSN(200 + i))
		s.nodes["a"].mu.Lock()
		s.nodes["a"].read.Slots = []cluster.Slot{slot, fakeHold("a")}
		s.nodes["a"].mu.Unlock()
		s.cycle(t)
	}
	if more := s.term.writes[before:]; len(more) != 0 {
		t.Errorf("moving positions alone were written to the ledger: %v", more)
	}
}

func TestANewGenerationIsInTheLedgerBeforeAnyServerSeesIt(t *testing.T) {
	s := newStage(t)
	s.term.fail = errors.New("etcd is away")
	if _, err := s.c.Cycle(t.Context()); err == nil {
		t.Error("the cycle went on without having recorded its generation")
	}
	for name, n := range s.nodes {
		if kinds := n.kinds(); len(kinds) != 0 {
			t.Errorf("%s was written: %v", name, kinds)
		}
	}
}

func TestASuccessorRecallsTheGeneration(t *testing.T) {
	s := newStage(t)
	s.cycle(t)
	next := newStage(t)
	next.term.parts = s.term.parts
	if err := next.c.Begin(t.Context(), next.term); err != nil {
		t.Fatal(err)
	}
	if got, want := next.c.memory.Generation, s.c.memory.Generation; got != want || got == 0 {
		t.Errorf("the successor knows generation %d, its predecessor %d", got, want)
	}
}

// The first cycle after a promotion begins a new generation, and its controller ends
// before it has dropped anything.
func TestASuccessorKnowsWhatAPromotionWasJudgedTo(t *testing.T) {
	s := newStage(t)
	s.cycle(t)
	promoted := s.c.memory
	promoted.Timeline, promoted.Generation, promoted.Slots = promoted.Timeline+1, promoted.Generation+1, maps.Clone(promoted.Slots)
	promoted.Server.Timeline = promoted.Timeline
	note := promoted.Slots["cdc"]
	note.Unproven = true
	promoted.Slots["cdc"] = note
	if err := s.c.rememberFirst(t.Context(), promoted); err != nil {
		t.Fatal(err)
	}
	mem, err := status.Recall(s.term.parts)
	if err != nil {
		t.Fatal(err)
	}
	if mem.Timeline != promoted.Timeline || !mem.Slots["cdc"].Unproven {
		t.Errorf("the successor knows timeline %d, and of cdc %+v", mem.Timeline, mem.Slots["cdc"])
	}
}

func TestASuccessorKnowsEverySlotThatWasSeen(t *testing.T) {
	s := newStage(t)
	s.cycle(t)
	recalled := func() []string {
		mem, err := status.Recall(s.term.parts)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(mem.Slots))
	}
	for _, slots := range [][]cluster.Slot{
		{fakeSlot("cdc"), fakeSlot("new")}, // long before positions are due again
		{fakeSlot("new")},
	} {
		var want []string
		for _, slot := range slots {
			want = append(want, slot.Name)
		}
		for range 5 { // one that is gone is forgotten after some reads
			s.nodes["a"].mu.Lock()
			s.nodes["a"].read.Slots = slots
			s.nodes["a"].mu.Unlock()
			s.cycle(t)
		}
		if got := recalled(); !slices.Equal(got, want) {
			t.Errorf("a successor knows of %v, the primary has %v", got, want)
		}
	}
}

func TestALedgerOfANewerVersionIsRefused(t *testing.T) {
	s := newStage(t)
	s.term.parts[status.PartCluster] = []byte(`{"version":99}`)
	if err := s.c.Begin(t.Context(), s.term); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("it was taken: %v", err)
	}
}

func TestPlanChangesNothing(t *testing.T) {
	s := newStage(t)
	todo, _ := s.c.Plan(t.Context())
	if len(todo.Steps) == 0 {
		t.Error("there is nothing to do")
	}
	for name, n := range s.nodes {
		if kinds := n.kinds(); len(kinds) != 0 {
			t.Errorf("%s was written: %v", name, kinds)
		}
	}
	if len(s.term.writes) != 0 {
		t.Errorf("the ledger was written: %v", s.term.writes)
	}
}

func TestARequestToAFollowerSaysThatItDoesNotLead(t *testing.T) {
	s := newStage(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.c.deps.Elector = waiting{}
	done := make(chan error, 1)
	go func() { done <- s.c.Run(ctx) }()
	if err := s.c.RequestSync(t.Context()); !ErrNotLeading(err) {
		t.Errorf("the request gave %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// waiting is an elector whose leadership never comes.
type waiting struct{}

func (waiting) Campaign(ctx context.Context) (Term, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (waiting) Load(context.Context) (map[string][]byte, error) { return nil, nil }

// explained is an error as a session gives it.
type explained struct{}

func (explained) Error() string  { return "role tool at b:5432 lacks pg_monitor" }
func (explained) Reason() string { return string(plan.ReasonNoPrivilege) }
func (explained) Hint() string   { return "GRANT pg_monitor TO tool;" }

func TestTheHintOfAReadErrorIsNotLost(t *testing.T) {
	s := newStage(t)
	s.nodes["b"].err = fmt.Errorf("reading b: %w", explained{})
	doc := s.cycle(t)
	if p := pairOf(doc, "cdc", "b"); p.Reason != plan.ReasonNoPrivilege || p.Hint != (explained{}).Hint() {
		t.Errorf("the pair is %s: %s", p.Reason, p.Hint)
	}
	for _, m := range doc.Members {
		if m.Node == "b" && m.Hint != (explained{}).Hint() {
			t.Errorf("member b: %+v", m)
		}
	}
}

func TestAMemberOfAnotherClusterIsNamed(t *testing.T) {
	s := newStage(t)
	s.cycle(t)
	s.nodes["b"].mu.Lock()
	s.nodes["b"].read.Node.SystemID = fakeSystem + 1
	s.nodes["b"].mu.Unlock()
	doc := s.cycle(t)
	for _, m := range doc.Members {
		if m.Node == "b" && (m.Role != "unknown" || !strings.Contains(m.Error, "43") || m.Hint == "") {
			t.Errorf("member b: %+v", m)
		}
	}
	if doc.Complete {
		t.Error("the observation counts as complete")
	}
}

// Who reads the log of last night cannot ask for the status of then.
func TestTheLogHasTheHints(t *testing.T) {
	s := newStage(t)
	var log bytes.Buffer
	s.c.deps.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
	for _, name := range []string{"b", "c"} {
		s.nodes[name].read.Node.WalLevel = "replica"
	}
	doc := s.cycle(t)
	pair := pairOf(doc, "cdc", "b")
	for _, f := range append(doc.Conditions, status.Finding{Hint: pair.Hint}) {
		if f.Hint != "" && !strings.Contains(log.String(), fmt.Sprintf("hint=%q", f.Hint)) {
			t.Errorf("no hint %q in\n%s", f.Hint, log.String())
		}
	}
	if pair.Hint == "" {
		t.Error("the scene is not set: nothing has a hint")
	}
}

func TestTheLogSaysOnceWhyAMemberDoesNotAnswer(t *testing.T) {
	s := newStage(t)
	var log bytes.Buffer
	s.c.deps.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
	s.nodes["b"].err = errors.New("no route to b")
	s.cycle(t)
	s.cycle(t)
	if n := strings.Count(log.String(), "member does not answer: node=b"); n != 1 || !strings.Contains(log.String(), "no route to b") {
		t.Errorf("said %d times, want once and why:\n%s", n, log.String())
	}
	s.nodes["b"].err = nil
	s.cycle(t)
	if !strings.Contains(log.String(), "member answers again: node=b role=standby") {
		t.Errorf("its return is not said:\n%s", log.String())
	}
}

// The status was shown, so its ledger is written, whenever SIGTERM comes.
func TestAStopLeavesNothingShownUnrecorded(t *testing.T) {
	s := newStage(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.nodes["a"].do = func(plan.Step) ([]cluster.Outcome, error) {
		cancel() // the daemon is stopped in the middle of the cycle
		return nil, nil
	}
	if _, err := s.c.Cycle(ctx); err != nil {
		t.Fatal(err)
	}
	if doc, ok := s.c.Status(); !ok || len(doc.Slots) == 0 {
		t.Fatal("the cycle showed nothing")
	}
	if !slices.ContainsFunc(s.term.writes, func(part string) bool { return strings.HasPrefix(part, "slots/") }) {
		t.Errorf("the ledger got only %v", s.term.writes)
	}
}
