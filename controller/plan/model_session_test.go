package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// session is a client's backend, with what it remembers from PostgreSQL 14 on
// (GlobalVisState): rows that died before `seen` are of use to nobody. It looks
// anew as it goes on, and never takes anything back, whatever slots come to pin.
type session struct {
	began       uint64 // in the order of all moments
	seen        cluster.XID
	application string
	busy        bool
}

// death is a catalog row that was updated or deleted: where, and by which transaction.
type death struct {
	place
	xid cluster.XID
}

// holding is what the marker of a standby's hold says of sessions: those that began
// before `since` may have seen that rows of before `before` are of no use; what
// died from `from` on none of them has.
type holding struct {
	before cluster.XID
	since  uint64
	from   cluster.LSN
}

const never = math.MaxUint64

func (w *world) moment() uint64 {
	w.moments++
	return w.moments
}

// outdate has a catalog row die.
func (w *world) outdate() {
	p := w.primary()
	w.died = append(w.died, death{place{p.node.Timeline, p.node.Insert.V}, w.nextXID})
	w.write(0x200)
}

// here reports whether a server has replayed a row's death.
func (s *server) here(d death) bool { return s.has(d.place) && d.at < s.end() }

// horizon is before which death rows are of no use, as a session works it out: what
// no slot here pins, and no transaction that is still to be replayed.
func (w *world) horizon(s *server) cluster.XID {
	x := s.oldest().Or(w.nextXID)
	for _, d := range w.died {
		ahead := d.timeline > s.node.Timeline || s.has(d.place) && !s.here(d)
		if ahead && d.xid.Precedes(x) {
			x = d.xid
		}
	}
	return x
}

func (w *world) connect(s *server, application string, busy bool) *session {
	one := &session{began: w.moment(), application: application, busy: busy}
	s.sessions = append(s.sessions, one)
	w.look(s, one)
	return one
}

// look has a session come across rows that died. On a primary it removes those
// that it believes to be of no use; a standby cannot write.
func (w *world) look(s *server, one *session) {
	one.seen = laterXID(one.seen, w.horizon(s))
	if s.node.InRecovery {
		return
	}
	s.pruned = laterXID(s.pruned, one.seen)
	s.node.Insert = cluster.Some(s.node.Insert.V + 0x10)
	s.node.Flush = s.node.Insert
	s.vacuums = append(s.vacuums, vacuum{s.node.Insert.V, s.removed, s.pruned})
}

func laterXID(a, b cluster.XID) cluster.XID {
	if !a.Normal() || a.Precedes(b) {
		return b
	}
	return a
}

// older gives the sessions that began before the hold pinned.
func (s *server) older() (old []*session) {
	for _, one := range s.sessions {
		if one.began < s.held.since {
			old = append(old, one)
		}
	}
	return old
}

// endangered: a session may have seen without the hold what a new mirror needs,
// and a row of that died by then.
func (w *world) endangered(s *server, at cluster.Position) bool {
	if !at.CatalogXmin.Precedes(s.held.before) || len(s.older()) == 0 {
		return false
	}
	return slices.ContainsFunc(w.died, func(d death) bool {
		return s.here(d) && d.at >= at.Restart && d.at < s.held.from
	})
}

// beginHolding: before a standby's hold comes to pin older rows than it did.
func (s *server) beginHolding(before cluster.XID) {
	if s.node.InRecovery {
		s.held = holding{laterXID(s.held.before, before), never, cluster.LSN(math.MaxUint64)}
	}
}

// holdsNow: a hold that pins nothing yet holds for nobody.
func (w *world) holdsNow(s *server, h *cluster.Slot) {
	if s.node.InRecovery && s.held.since == never && h.CatalogXmin.Or(0).Normal() {
		s.held.since, s.held.from = w.moment(), s.end()
	}
}

// sinceWhen gives when a hold came to pin, absent where it does not yet.
func (h holding) sinceWhen() cluster.Opt[time.Time] {
	if h.since == never || !h.before.Normal() {
		return cluster.None[time.Time]()
	}
	return cluster.Some(epochZero.Add(time.Duration(h.since) * time.Microsecond))
}

// tell writes it into the hold's marker.
func (h holding) tell(m *cluster.Marker) {
	if !h.before.Normal() {
		return
	}
	m.UnheldBefore = cluster.Some(h.before)
	if m.HeldSince = h.sinceWhen(); m.HeldSince.OK {
		m.HeldFrom = cluster.Some(h.from)
	}
}

// endSessions ends idle ones that are older than the hold. Patroni connects anew.
func (w *world) endSessions(s *server, step Step) (rows []cluster.Outcome) {
	for _, whose := range step.Names {
		row := cluster.Outcome{Name: cluster.HoldName, Code: cluster.CodeUnchanged}
		for _, one := range s.older() {
			if one.busy || whose != "*" && !strings.HasPrefix(one.application, whose) {
				continue
			}
			s.sessions = slices.DeleteFunc(s.sessions, func(other *session) bool { return other == one })
			row.Code = cluster.CodeEnded
			if one.application == "Patroni" {
				w.connect(s, one.application, false)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// missed says which row that a slot needs would not be there after a promotion of
// this server, "" for none: rows that died from restart_lsn on, by transactions
// from need on. What the primary's sessions have removed will be replayed.
func (w *world) missed(s *server, from cluster.LSN, need cluster.XID) string {
	for _, d := range w.died {
		if d.at < from || d.xid.Precedes(need) {
			continue
		}
		if p := w.primary(); p != nil && p.has(d.place) && d.xid.Precedes(p.pruned) {
			return fmt.Sprintf("the row that died at %s (%d) has been removed by a session of the primary", d.at, d.xid)
		}
		if !s.here(d) {
			continue
		}
		if d.xid.Precedes(s.pruned) {
			return fmt.Sprintf("the row that died at %s (%d) has been removed by a session", d.at, d.xid)
		}
		for _, one := range s.sessions {
			if s.up && d.xid.Precedes(one.seen) {
				return fmt.Sprintf("a session of %s there would remove the row that died at %s (%d), it believes that nobody needs what died before %d", one.application, d.at, d.xid, one.seen)
			}
		}
	}
	return ""
}
