package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// cycle is what one Decide works on: its arguments, the memory that it makes
// for the next cycle (a copy), and what it has found so far.
type cycle struct {
	now time.Time
	p   Policy
	o   Observation
	m   Memory
	pl  Plan

	index     index
	lead      leadership
	readAt    time.Time // of the primary
	successor bool      // the first read of a new primary or timeline
	restarted bool      // the first read of a primary since it was started
	// ledTimeline is the one that was remembered before this read.
	ledTimeline cluster.Timeline
	fresh       bool // the first read of all: nothing is known of the time before
	standbys    []string
	replays     map[string]cluster.LSN // replay positions of the standbys that count for kept reads
	firsts      map[string]bool        // members read for the first time by this leader
	giveUp      []string               // members given up in this cycle
	strangers   []string               // members of which this ledger has never heard, with mirrors of another store
	endangered  []string               // members whose mirrors this promotion has put in danger

	hold     hold             // the primary's
	floors   map[string]int64 // per node: mirrors of an earlier generation were left behind
	slots    []*tracked       // the selected ones, by name
	tracks   map[string]*tracked
	pairs    []*pair
	wants    map[string]cluster.XID // per slot: the oldest catalog_xmin that the primary's hold does not cover yet
	moved    bool                   // a slot of the primary has moved since the last read
	unproven []string               // slots of a new primary to be dropped
}

// Decide turns what was observed and remembered into the steps of one cycle.
// It changes none of its arguments. Without one primary there are no steps:
// nothing is withdrawn, and the verdicts stay what they were.
func Decide(now time.Time, p Policy, o Observation, m Memory) Plan {
	c := &cycle{now: now, p: p.withDefaults(), o: o, m: m.clone(), wants: map[string]cluster.XID{}, firsts: map[string]bool{}, tracks: map[string]*tracked{}}
	c.index = index{slots: map[string]map[string]*cluster.Slot{}, holds: map[string]hold{}}
	c.freshen()
	c.m.lead()
	c.lead = findPrimary(c.o, c.m)
	c.heedManager()
	c.noteReset()
	if c.lead.primary == "" {
		c.noteReached()
		return c.withoutPrimary()
	}
	c.readAt = o.Nodes[c.lead.primary].At
	c.standbys = standbyNames(c.o, c.m, c.lead.primary)
	c.succession()
	c.noteReached()
	c.watchFences()
	c.noteMembers()
	c.noteReplays()
	c.noteOrphans()
	c.trackSlots()
	c.noteAside()
	c.settleGeneration()
	c.coverSlots()
	c.makePairs()
	c.steps()
	c.conditions()
	c.pace()
	return c.finish()
}

func (c *cycle) steps() {
	targets := c.targets()
	if len(targets) == 0 {
		return
	}
	c.fenceSteps()
	c.markStep()
	c.lowerPrimary()
	for _, name := range targets[1:] {
		c.lowerStandby(name)
	}
	for _, name := range targets[1:] {
		c.stampStep(name)
		c.endSessions(name)
		c.applySteps(name)
		c.touchStep(name)
	}
	c.dropOnPrimary()
	for _, name := range targets[1:] {
		c.dropStep(name)
	}
	c.raise()
	c.failoverStep()
	c.gateSteps(targets)
	slices.SortStableFunc(c.pl.Steps, func(a, b Step) int { return int(a.Stage) - int(b.Stage) })
}

func (c *cycle) finish() Plan {
	c.pl.Primary, c.pl.slots = c.lead.primary, len(c.slots)
	c.pl.pairs = make([]pair, 0, len(c.pairs))
	for _, pr := range c.pairs {
		pr.verdict.Since = since(c.now, pr.verdict, pr.note.Verdict)
		c.pl.pairs = append(c.pl.pairs, *pr)
		c.pl.Verdicts = append(c.pl.Verdicts, pr.verdict)
	}
	c.m.Kept = map[string][]Kept{}
	for _, t := range c.slots {
		c.m.Slots[t.slot.Name] = t.note
		if len(t.kept) > 0 {
			c.m.Kept[t.slot.Name] = t.kept
		}
	}
	c.dateConditions()
	c.pl.Memory = c.m
	return c.pl
}

// succession empties what was learned of another primary or timeline.
func (c *cycle) succession() {
	n := c.lead.read.Node
	c.successor = c.m.Timeline != 0 && (c.m.Timeline != n.Timeline || c.m.Primary != c.lead.primary)
	if c.successor {
		c.m.Kept = map[string][]Kept{}
		for p, note := range c.m.Pairs {
			note.Resume, note.Tried = "", Tried{}
			c.m.Pairs[p] = note
		}
		for name, note := range c.m.Slots {
			note.AbsentReads, note.AbsentAt = 0, time.Time{}
			c.m.Slots[name] = note
		}
	}
	if c.successor || len(c.m.Reigns) == 0 {
		c.m.Reigns = reigned(c.m.Reigns, Reign{Primary: c.lead.primary, Timeline: n.Timeline, Since: c.now, ForkedAt: forkOf(n, 0)})
	}
	c.fresh, c.ledTimeline = c.m.Timeline == 0, c.m.Timeline
	if !c.fresh && c.m.Timeline != n.Timeline {
		c.m.PromotedAt = c.readAt
		c.m.branched()
	}
	c.m.SystemID, c.m.Timeline, c.m.Primary = c.lead.systemID, n.Timeline, c.lead.primary
	c.restarted = c.m.serves(Server{Primary: c.lead.primary, Timeline: n.Timeline, Started: n.Started})
}

// serves notes which server's slots are read, and whether that one has begun anew. A
// crash takes slots back to where they were saved; which of this leader's reads that
// was before is not told apart.
func (m *Memory) serves(now Server) (restarted bool) {
	was := m.Server
	restarted = !now.Started.Equal(was.Started)
	m.Steady = cluster.Some(now.Same(was) && m.Steady.Or(true))
	m.Server = now
	return restarted
}

// maxReigns bounds the history of roles and timelines.
const maxReigns = 32

func reigned(before []Reign, now Reign) []Reign {
	all := append(slices.Clone(before), now)
	return all[max(0, len(all)-maxReigns):]
}

// noteReplays collects how far each standby is that may still want a kept read.
func (c *cycle) noteReplays() {
	c.replays = map[string]cluster.LSN{}
	for _, name := range c.standbys {
		note := c.m.Standbys[name]
		if note.GivenUp || note.ReadAt.IsZero() || c.lead.wrong[name] != 0 {
			continue
		}
		c.replays[name] = note.Replay
	}
}

// lead empties what an earlier leadership gathered in this process: a new
// leader reads every member itself before it relies on anything.
func (m *Memory) lead() {
	if m.Led == m.Epoch && m.Led != 0 {
		return
	}
	m.Led = m.Epoch
	m.Kept, m.FencedAt, m.RaisedAt = map[string][]Kept{}, map[string]time.Time{}, time.Time{}
	m.Shown, m.Steady = Shown{}, cluster.None[bool]()
	for p, n := range m.Pairs {
		n.Resume, n.Tried = "", Tried{}
		m.Pairs[p] = n
	}
	for name, n := range m.Slots {
		n.AbsentReads, n.AbsentAt = 0, time.Time{}
		m.Slots[name] = n
	}
	for name, n := range m.Standbys {
		n.ReadAt, n.Follows = time.Time{}, false
		m.Standbys[name] = n
	}
}

// clone copies what Decide and Settle change; kept reads are replaced, never altered.
func (m Memory) clone() Memory {
	m.Kept = cloned(m.Kept)
	m.Slots = cloned(m.Slots)
	m.Pairs = cloned(m.Pairs)
	m.Standbys = cloned(m.Standbys)
	m.Conditions = cloned(m.Conditions)
	m.Orphans = cloned(m.Orphans)
	m.FencedAt, m.GateAt = cloned(m.FencedAt), cloned(m.GateAt)
	m.Forgotten, m.TakenOver, m.Watched = cloned(m.Forgotten), cloned(m.TakenOver), cloned(m.Watched)
	return m
}

func cloned[K comparable, V any](in map[K]V) map[K]V {
	if in == nil {
		return map[K]V{}
	}
	return maps.Clone(in)
}

func (p Policy) withDefaults() Policy {
	orDuration(&p.Interval, DefaultInterval)
	orDuration(&p.MaxHoldAge, DefaultMaxHoldAge)
	orDuration(&p.RaiseEvery, DefaultRaiseEvery)
	orDuration(&p.StaleAfter, DefaultStaleAfter)
	orDuration(&p.LeaseTTL, DefaultLeaseTTL)
	if p.MaxWalk <= 0 {
		p.MaxWalk = DefaultMaxWalk
	}
	return p
}

func orDuration(d *time.Duration, other time.Duration) {
	if *d <= 0 {
		*d = other
	}
}
