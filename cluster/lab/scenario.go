package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// The two slots of the scenario: one with a busy consumer, and one that is
// created in the middle of everything and that nobody reads before the failover.
const (
	BusySlot = "orders"
	IdleSlot = "audit"
)

// Scenario is one failover under load.
type Scenario struct {
	Seed     uint64
	Standbys int           // 0 is two
	Interval time.Duration // sync.interval of the controller; 0 is one second
	Binary   string        // the program slotkeeper
	BinDir   string        // PostgreSQL's programs; "" is FindDefaultPG()
	Dir      string        // where the lab's folder is made; "" is the system's
	Keep     bool          // leave the folder
	Logger   hclog.Logger

	// Sabotage is done to the promoted node before the consumer comes back: the
	// account must find what it does. May be nil.
	Sabotage func(ctx context.Context, promoted *Node) error

	Progress func(step string)  // told what happens; may be nil
	OnStatus func(doc Document) // shown each status that the controller gave; may be nil
}

// choices are what the seed decides beside the writers' doings.
type choices struct {
	feedback     bool          // hot_standby_feedback on the standbys
	warm         time.Duration // under load before the idle slot is made
	cut          bool          // the consumer loses its connection once before that
	kill         time.Duration // from the idle slot's being SAFE to the kill
	after        time.Duration // under load on the promoted node
	confirmEvery time.Duration
	load         LoadOptions
}

func (s Scenario) choices() choices {
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	between := func(lo, hi time.Duration) time.Duration { return lo + time.Duration(rng.Int64N(int64(hi-lo))) }
	return choices{
		feedback:     rng.IntN(2) == 0,
		warm:         between(500*time.Millisecond, 2*time.Second),
		cut:          rng.IntN(2) == 0,
		kill:         between(200*time.Millisecond, 3*time.Second),
		after:        between(time.Second, 2*time.Second),
		confirmEvery: between(time.Millisecond, 150*time.Millisecond),
		load:         DefaultLoad(s.Seed),
	}
}

func (s Scenario) withDefaults() Scenario {
	if s.Standbys == 0 {
		s.Standbys = 2
	}
	if s.Interval == 0 {
		s.Interval = time.Second
	}
	if s.Sabotage == nil {
		s.Sabotage = func(context.Context, *Node) error { return nil }
	}
	if s.Progress == nil {
		s.Progress = func(string) {}
	}
	if s.OnStatus == nil {
		s.OnStatus = func(Document) {}
	}
	return s
}

// Report is what came of a scenario.
type Report struct {
	Seed     uint64
	Dir      string // the lab's folder, there only when it was kept
	Killed   string
	Promoted string
	Fork     cluster.LSN // where the promoted node's timeline began

	Mirrored     bool      // both slots stood on the promoted node, before anybody touched it
	Accounts     []Account // of the busy and the idle slot
	Acknowledged int       // rows whose commit a server acknowledged
	Unreplicated int       // of these, rows that asynchronous replication lost with the primary

	SafeAfter   time.Duration // from the controller's start to the busy slot's being SAFE everywhere
	ReadyAfter  time.Duration // from the idle slot's creation to its being SAFE everywhere
	ReadyCycles int           // the same in intervals of the controller, begun ones counted
	Promotion   time.Duration // from the kill to a node that takes writes
	FirstRow    time.Duration // from there to the consumer's first row
	SafeAgain   time.Duration // from there to both slots' being SAFE on the other standbys; 0 when there are none

	Errors []string // what went wrong beside lost rows
}

// Lost is how many rows and messages did not come.
func (r Report) Lost() int {
	lost := 0
	for _, account := range r.Accounts {
		lost += len(account.Lost) + len(account.LostNotes)
	}
	return lost
}

// OK reports whether the scenario ended as it should: mirrored, nothing lost,
// nothing wrong.
func (r Report) OK() bool { return r.Mirrored && r.Lost() == 0 && len(r.Problems()) == 0 }

// Problems are all errors and all contradictions in what was delivered.
func (r Report) Problems() []string {
	problems := append([]string(nil), r.Errors...)
	for _, account := range r.Accounts {
		for _, problem := range account.Problems {
			problems = append(problems, fmt.Sprintf("slot %s: %s", account.Slot, problem))
		}
	}
	return problems
}

// LostRows lists what did not come, a few of each slot.
func (r Report) LostRows() []string {
	var lines []string
	for _, account := range r.Accounts {
		var names []string
		for _, id := range account.Lost {
			names = append(names, id.String())
		}
		for _, key := range account.LostNotes {
			names = append(names, "message "+key)
		}
		if len(names) > 20 {
			names = append(names[:20], fmt.Sprintf("and %d more", len(names)-20))
		}
		if len(names) > 0 {
			lines = append(lines, fmt.Sprintf("slot %s lost %s", account.Slot, strings.Join(names, " ")))
		}
	}
	return lines
}
