package main

import (
	"strings"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

var begun = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// shop is a document in which everything is SAFE: slots cdc and two on b and c.
func shop() status.Status {
	pairs := func() []status.Standby {
		return []status.Standby{{Node: "b", Verdict: plan.Safe}, {Node: "c", Verdict: plan.Safe}}
	}
	return status.Status{
		SchemaVersion: 1, Scope: "shop", Source: "daemon", Complete: true,
		At: begun.Add(2 * time.Second), ObservedAt: begun.Add(time.Second),
		Primary: &status.Primary{Node: "a"},
		Leader:  status.Leader{Name: "node1"},
		Members: []status.Member{{Node: "a", Role: "primary"}, {Node: "b", Role: "standby"}, {Node: "c", Role: "standby"}},
		Slots:   []status.Slot{{Name: "cdc", Standbys: pairs()}, {Name: "two", Standbys: pairs()}},
	}
}

func TestWhatWaitMisses(t *testing.T) {
	for name, c := range map[string]struct {
		slots, standbys []string
		change          func(*status.Status)
		want            string // "" for nothing: success
	}{
		"all safe":                {change: func(*status.Status) {}},
		"observed before":         {change: func(s *status.Status) { s.ObservedAt = begun }, want: "no observation has begun since"},
		"incomplete":              {change: func(s *status.Status) { s.Complete = false; s.Members[2].Role = "unknown" }, want: "not complete: no answer of c"},
		"incomplete, b asked":     {standbys: []string{"b"}, change: func(s *status.Status) { s.Complete = false }},
		"no primary":              {change: func(s *status.Status) { s.Primary = nil }, want: "there is no primary"},
		"no slot":                 {change: func(s *status.Status) { s.Slots = nil }, want: "there is no slot"},
		"no standby":              {change: func(s *status.Status) { s.Slots[0].Standbys = nil }, want: "slot cdc: there is no standby"},
		"one pending":             {change: func(s *status.Status) { s.Slots[1].Standbys[1].Verdict = plan.Pending }, want: "slot two on c: PENDING"},
		"another slot pending":    {slots: []string{"cdc"}, change: func(s *status.Status) { s.Slots[1].Standbys[1].Verdict = plan.Pending }},
		"another standby pending": {standbys: []string{"b"}, change: func(s *status.Status) { s.Slots[1].Standbys[1].Verdict = plan.Pending }},
		"unknown slot":            {slots: []string{"cdc", "nix"}, change: func(*status.Status) {}, want: "slot nix: there is no such slot"},
		"standby not there":       {standbys: []string{"a"}, change: func(*status.Status) {}, want: "slot cdc on a: not a standby at present"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop()
			c.change(&s)
			w := &waiter{config: &config.Config{}, slots: c.slots, standbys: c.standbys, begun: begun}
			got := strings.Join(w.missing(s), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhenSyncIsSettled(t *testing.T) {
	for name, c := range map[string]struct {
		verdict plan.State
		reason  plan.Reason
		want    bool
	}{
		"safe":              {plan.Safe, "", true},
		"new":               {plan.Pending, plan.ReasonNew, false},
		"replay":            {plan.Pending, plan.ReasonReplayLag, false},
		"database gone":     {plan.Pending, plan.ReasonDatabaseGone, true},
		"gap, made again":   {plan.Unsafe, plan.ReasonProtectionGap, false},
		"slot missing":      {plan.Unsafe, plan.ReasonSlotMissing, false},
		"not ours":          {plan.Unsafe, plan.ReasonNotOurs, true},
		"unreachable":       {plan.Unknown, plan.ReasonUnreachable, true},
		"lost for good":     {plan.Lost, plan.ReasonWALRemoved, true},
		"extension missing": {plan.Unsafe, plan.ReasonExtensionUnavailable, true},
	} {
		s := shop()
		s.Slots[0].Standbys[1].Verdict, s.Slots[0].Standbys[1].Reason = c.verdict, c.reason
		if got := settled(s); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	none := shop()
	none.Primary = nil
	none.Slots[0].Standbys[0].Verdict = plan.Pending
	if !settled(none) {
		t.Error("without a primary no cycle mends anything")
	}
}

func TestFreshness(t *testing.T) {
	c := config.Default()
	for name, x := range map[string]struct {
		change func(*status.Status)
		age    time.Duration
		want   string
	}{
		"fresh":                 {func(*status.Status) {}, time.Second, ""},
		"old":                   {func(*status.Status) {}, time.Minute, "the last observation is 1m0s old"},
		"ledger":                {func(s *status.Status) { s.Source = "ledger" }, 40 * time.Second, ""},
		"ledger, no leader":     {func(s *status.Status) { s.Source = "ledger"; s.Leader.Name = "" }, time.Second, "no controller leads"},
		"ledger, old":           {func(s *status.Status) { s.Source = "ledger" }, time.Minute, "old"},
		"nothing observed ever": {func(s *status.Status) { s.ObservedAt = time.Time{} }, 0, "no observation is recorded"},
	} {
		s := shop()
		x.change(&s)
		got := freshness(s, c, begun.Add(time.Second).Add(x.age))
		if (got == "") != (x.want == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s: got %q, want %q", name, got, x.want)
		}
	}
}
