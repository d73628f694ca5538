package postgres

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// nodeRow is what nodeSQL gives, as the wire has it.
type nodeRow struct {
	pid                            uint32
	serverVersion                  int
	script                         *string
	systemID                       string
	timeline                       int64
	historyTimelines               []int64
	historyLSNs                    []string
	inRecovery                     bool
	insert, flush, receive, replay *string
	started                        time.Time
	walLevel, primarySlotName      string
	feedback                       bool
	maxSlots, usedSlots            int
	clock                          time.Time
	fence                          fenceRow
	heartbeat, heldForAllSince     *time.Time
	library                        string
	protocol                       int
	syncSlots                      bool
	standbySlots                   string
	idleSeconds                    int64
	nextXID                        int64
	freezeMaxAge                   int64
	writer                         writerRow
}

// writerRow is the oldest open transaction with an id, all NULL where there is none.
type writerRow struct {
	pid     *int32
	gid     *string
	xid     *uint32
	started *time.Time
}

type fenceRow struct {
	scope, store *string
	epoch        *int64
	owner        *string
	systemID     *string
	timeline     *int64
}

func (n *nodeRow) fields() []any {
	return []any{
		&n.pid, &n.serverVersion, &n.script,
		&n.systemID, &n.timeline, &n.historyTimelines, &n.historyLSNs, &n.inRecovery,
		&n.insert, &n.flush, &n.receive, &n.replay,
		&n.started, &n.walLevel, &n.primarySlotName, &n.feedback,
		&n.maxSlots, &n.usedSlots, &n.clock,
		&n.fence.scope, &n.fence.store, &n.fence.epoch, &n.fence.owner, &n.fence.systemID, &n.fence.timeline,
		&n.heartbeat, &n.library, &n.protocol, &n.heldForAllSince,
		&n.syncSlots, &n.standbySlots, &n.idleSeconds,
		&n.nextXID, &n.freezeMaxAge, &n.writer.pid, &n.writer.gid, &n.writer.xid, &n.writer.started,
	}
}

// fits reports whether SQL objects, library and this program belong together.
func (n *nodeRow) fits() error {
	switch {
	case n.script == nil:
		return &staleError{
			what: "functions of slotkeeper are there but the extension is not",
			hint: "drop the schema slotkeeper and run CREATE EXTENSION slotkeeper; on the primary",
		}
	case !sameVersion(*n.script, n.library):
		return &staleError{
			what: fmt.Sprintf("the SQL objects of extension slotkeeper are of version %s, its library is of version %s", *n.script, n.library),
			hint: "run ALTER EXTENSION slotkeeper UPDATE; in that database on the primary, and install the same package on every node",
			// A session keeps the library that it has loaded, also after
			// a newer one was installed.
			reconnect: true,
		}
	case n.protocol != Protocol:
		return &staleError{
			what:      fmt.Sprintf("the extension's library %s speaks protocol %d, this program speaks %d", n.library, n.protocol, Protocol),
			hint:      "install an extension and a slotkeeper of one release",
			reconnect: true,
		}
	}
	return nil
}

// sameVersion: a library may be a patch release of its script's version.
func sameVersion(script, library string) bool {
	return library == script || strings.HasPrefix(library, script+".")
}

func (n *nodeRow) convert() (cluster.Node, error) {
	out := cluster.Node{
		InRecovery: n.inRecovery, Started: n.started.UTC(), WalLevel: n.walLevel, PrimarySlotName: n.primarySlotName,
		Feedback: n.feedback, MaxSlots: n.maxSlots, UsedSlots: n.usedSlots, Clock: n.clock.UTC(),
		Heartbeat: optTime(n.heartbeat), Library: n.library, Script: *n.script, Protocol: n.protocol, ServerVersion: n.serverVersion,
		SyncSlots: n.syncSlots, SynchronizedStandbySlots: slotList(n.standbySlots), IdleSlotTimeout: time.Duration(n.idleSeconds) * time.Second,
		FreezeMaxAge: n.freezeMaxAge, HeldForAllSince: optTime(n.heldForAllSince), OldestWriter: n.writer.convert(),
	}
	var err error
	if out.NextXID, err = cluster.ParseXID(strconv.FormatInt(n.nextXID, 10)); err != nil {
		return out, err
	}
	if out.SystemID, err = cluster.ParseSystemID(n.systemID); err != nil {
		return out, err
	}
	if out.Timeline, err = timeline(n.timeline); err != nil {
		return out, err
	}
	if out.Fence, err = n.fence.convert(); err != nil {
		return out, fmt.Errorf("in its fence: %w", err)
	}
	if len(n.historyTimelines) != len(n.historyLSNs) {
		return out, fmt.Errorf("its history has %d timelines and %d positions", len(n.historyTimelines), len(n.historyLSNs))
	}
	var l lsns
	for i, t := range n.historyTimelines {
		fork := cluster.Fork{LSN: l.parse(n.historyLSNs[i])}
		if fork.Timeline, err = timeline(t); err != nil {
			return out, fmt.Errorf("in its history: %w", err)
		}
		out.History = append(out.History, fork)
	}
	out.Insert, out.Flush, out.Receive, out.Replay = l.opt(n.insert), l.opt(n.flush), l.opt(n.receive), l.opt(n.replay)
	return out, l.err
}

// slotList reads a setting that lists slots: names of slots hold nothing that
// needs quotes, but quotes are allowed around them.
func slotList(setting string) []string {
	var names []string
	for _, name := range strings.Split(setting, ",") {
		if name = strings.Trim(strings.TrimSpace(name), `"`); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// convert: a node without a fence file has a NULL fence, all fields NULL.
func (f fenceRow) convert() (cluster.Opt[cluster.Fence], error) {
	if f.scope == nil || f.store == nil || f.epoch == nil {
		return cluster.None[cluster.Fence](), nil
	}
	out := cluster.Fence{Scope: *f.scope, Store: *f.store, Epoch: cluster.Epoch(*f.epoch), Owner: str(f.owner)}
	var err error
	if f.systemID != nil && *f.systemID != "" {
		if out.SystemID, err = cluster.ParseSystemID(*f.systemID); err != nil {
			return cluster.None[cluster.Fence](), err
		}
	}
	if f.timeline != nil {
		if out.Timeline, err = timeline(*f.timeline); err != nil {
			return cluster.None[cluster.Fence](), err
		}
	}
	return cluster.Some(out), nil
}

// convert: a backend that has just begun to write may have no start yet.
func (w writerRow) convert() cluster.Opt[cluster.Transaction] {
	if w.pid == nil || w.xid == nil {
		return cluster.None[cluster.Transaction]()
	}
	return cluster.Some(cluster.Transaction{PID: *w.pid, GID: str(w.gid), XID: cluster.XID(*w.xid), Started: optTime(w.started).V})
}

// lsns parses positions and keeps the first error.
type lsns struct{ err error }

func (l *lsns) parse(s string) cluster.LSN {
	v, err := cluster.ParseLSN(s)
	if err != nil && l.err == nil {
		l.err = err
	}
	return v
}

func (l *lsns) opt(s *string) cluster.Opt[cluster.LSN] {
	if s == nil {
		return cluster.None[cluster.LSN]()
	}
	return cluster.Some(l.parse(*s))
}

func timeline(v int64) (cluster.Timeline, error) {
	if v < 0 || v > math.MaxUint32 {
		return 0, fmt.Errorf("timeline %d is not a number of 32 bits", v)
	}
	return cluster.Timeline(v), nil
}

// optTime gives UTC, so that equal times are equal values.
func optTime(t *time.Time) cluster.Opt[time.Time] {
	if t == nil {
		return cluster.None[time.Time]()
	}
	return cluster.Some(t.UTC())
}

func optXID(v *uint32) cluster.Opt[cluster.XID] {
	if v == nil {
		return cluster.None[cluster.XID]()
	}
	return cluster.Some(cluster.XID(*v))
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
