package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Reset is a primary that was put back on its own timeline: its disk is that of
// an older moment. It takes the timeline on from there, and before long its
// positions look good again, so it is remembered where it began.
type Reset struct {
	Primary  string           `json:"primary"`
	Timeline cluster.Timeline `json:"timeline"`
	Insert   cluster.LSN      `json:"insert"`  // where its WAL ended when that was seen
	Reached  cluster.LSN      `json:"reached"` // how far that timeline is known to have been written
	// Same are the standbys that had nothing beyond Insert then: what they replay
	// since is what this primary has written. One whose walreceiver has not begun yet
	// is none of them: it may still be replaying what lies on its own disk.
	Same []string `json:"same,omitempty"`
}

// Shown is what the last answer of a writable node showed, and how far its timeline
// was known to reach by then.
type Shown struct {
	Node    string
	Started time.Time
	Reached cluster.LSN
}

// goesOn reports whether a later answer is of the same start of the server, and has
// all that was known when the one before had come. A disk is not put back under a
// server that runs: where every answer takes longer than a cycle, each is older than
// what the standbys show by then.
func (s Shown) goesOn(name string, n cluster.Node) bool {
	return s.Node == name && s.Started.Equal(n.Started) && n.Insert.V >= s.Reached
}

// putBack says what is wrong with a writable node that lacks WAL which its timeline
// is known to have had, nil where it does not. A crash takes nothing of that: whole
// records that were flushed stay, and standbys replay nothing else. A read that began before the
// standbys showed it may be as old as it looks: where the server was started since the
// answer before, it is no word of a primary, and the next one tells.
func (l *leadership) putBack(name string, fact Fact[NodeRead], m Memory) *Condition {
	n := fact.Value.Node
	l.shown = Shown{Node: name, Started: n.Started, Reached: m.Reached}
	if known := m.Reset; known.OK && known.V.Primary == name && known.V.Timeline == n.Timeline {
		l.reset = known
		return l.reset.V.condition()
	}
	if n.Timeline != m.Timeline || !n.Insert.OK || n.Insert.V >= m.Reached {
		return nil
	}
	if !fact.At.After(m.ReachedAt) {
		if m.Shown.goesOn(name, n) {
			return nil
		}
		return &Condition{Code: CondNoLeader, Severity: Critical,
			Message: fmt.Sprintf("the answer of %s was asked for before its standbys showed that its timeline reaches %s, and is at %s: it may be old, and counts for nothing", name, m.Reached, n.Insert.V),
			Hint:    "mirrors stay as they are; look at why it answers so slowly if this stays"}
	}
	l.reset = cluster.Some(Reset{Primary: name, Timeline: n.Timeline, Insert: n.Insert.V, Reached: m.Reached})
	return l.reset.V.condition()
}

func (r Reset) condition() *Condition {
	return &Condition{Code: CondTimelineReset, Severity: Critical,
		Message: fmt.Sprintf("the WAL of %s ended at %s of timeline %d, of which %s had been written: its disk was put back to an older state, and nothing is written anywhere",
			r.Primary, r.Insert, r.Timeline, r.Reached),
		Hint: "stop it at once: standbys that have more take its WAL in among the other. Restore a state that has it all, or, if this one was meant, make those standbys anew from it; then stop slotkeeper, remove its ledger and start it again"}
}

// noteReached remembers how far the primary's timeline is known to have been
// written, for the reads after this one: by the word of the standbys that follow it.
// One that was ahead from the first read on is from somewhere else, and says nothing
// of this primary. The primary's own word is not enough: WAL is flushed in pages, so
// its flush_lsn may be within a record, and a crash goes back to that one's beginning
// (XLogBackgroundFlush in xlog.c). A standby replays whole records only.
func (c *cycle) noteReached() {
	timeline, insert := c.m.Timeline, cluster.None[cluster.LSN]()
	if c.lead.primary != "" {
		insert = c.lead.read.Node.Insert
	}
	for name, note := range c.m.Standbys {
		read, ok := c.readable(name)
		if !ok || read.Node.Timeline != timeline {
			continue
		}
		note.Follows = note.Follows || insert.OK && note.Replay != 0 && note.Replay <= insert.V
		c.m.Standbys[name] = note
		if note.Follows {
			c.m.reach(read.Node.Replay.Or(0), c.now)
		}
	}
}

func (m *Memory) reach(at cluster.LSN, now time.Time) {
	if at > m.Reached {
		m.Reached, m.ReachedAt = at, now
	}
}

// branched forgets what was learned of the timeline before this one. What is known
// of a primary that was put back on it stays: its standbys may be promoted.
func (m *Memory) branched() {
	m.Reached, m.ReachedAt, m.Shown = 0, time.Time{}, Shown{}
	for name, note := range m.Standbys {
		note.Follows = false
		m.Standbys[name] = note
	}
}

// noteReset remembers a primary that was put back when that is first seen.
func (c *cycle) noteReset() {
	if c.lead.shown.Node != "" {
		c.m.Shown = c.lead.shown
	}
	reset, known := c.lead.reset.V, c.m.Reset
	if !c.lead.reset.OK || known.OK && known.V.Primary == reset.Primary && known.V.Timeline == reset.Timeline {
		return
	}
	for _, name := range standbyNames(c.o, c.m, reset.Primary) {
		read, ok := c.readable(name)
		if ok && read.Node.Timeline == reset.Timeline && read.Node.Replay.OK && read.Node.Receive.OK && received(read.Node) <= reset.Insert {
			reset.Same = append(reset.Same, name)
		}
	}
	c.m.Reset = cluster.Some(reset)
}

// mixes reports whether a node that has so much of a timeline has WAL of two
// histories of it, its own and that of the primary that was put back. A walreceiver
// asks for the whole segment that it is in, and writes over what is there.
func (m Memory) mixes(node string, timeline cluster.Timeline, upto cluster.LSN) bool {
	r := m.Reset
	return r.OK && r.V.Timeline == timeline && upto > r.V.Insert && node != r.V.Primary && !slices.Contains(r.V.Same, node)
}

// resetRule: a standby that has more of the timeline than the primary that was put
// back, also when that primary is gone again.
func (c *cycle) resetRule(pr *pair) *finding {
	n := pr.fact.Value.Node
	if !c.m.mixes(pr.node, n.Timeline, received(n)) {
		return nil
	}
	return &finding{Unsafe, ReasonTimelineMismatch, fmt.Sprintf("%s had timeline %d up to %s when the primary %s was put back to %s of it, and may have taken WAL of both in",
		pr.node, n.Timeline, received(n), c.m.Reset.V.Primary, c.m.Reset.V.Insert), "do not promote it; make it anew, from a state that has it all or from the primary that is to stay"}
}

// beyondPrimary reports whether a mirror of this very timeline stands where the
// primary's WAL does not reach. It was made from a read of a primary that had it.
func beyondPrimary(mirror cluster.Slot, primary cluster.Node) bool {
	return mirror.Marker.Timeline == primary.Timeline && primary.Insert.OK && mirror.Confirmed.Or(0) > primary.Insert.V
}
