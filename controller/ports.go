package controller

import (
	"context"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// Source says which nodes there are. With an error it gives what it knew before,
// where it knew something.
type Source interface {
	Topology(ctx context.Context) (cluster.Topology, error)
}

// announcer is what a Source may be: it signals that Topology gives something
// else than before, and the loop looks at once.
type announcer interface {
	Changed() <-chan struct{}
}

// Node is one PostgreSQL server. Its methods end when their context does, also
// against a server that hangs. One goroutine at a time calls them; beside it,
// another one calls Watch.
type Node interface {
	// Read gives one complete read, or an error. An error that has a
	// `Reason() string` names the verdict reason that it stands for; one that
	// has a `Hint() string` says what to do about it.
	Read(ctx context.Context) (plan.NodeRead, error)
	// Snapshots gives the bytes of the snapshot files at exactly these
	// positions; a position without a file is left out.
	Snapshots(ctx context.Context, at []cluster.LSN) (map[cluster.LSN][]byte, error)
	// Walks proves from the primary's own WAL, maxBytes of it for all walks
	// together at most. Each slot asked for has an answer.
	Walks(ctx context.Context, wanted []plan.WalkWanted, maxBytes int64) (map[string]plan.Walk, error)
	// Do makes the one call that the step stands for. An error that has a
	// `Timeout() bool` which gives true says that no answer came in time.
	Do(ctx context.Context, step plan.Step) ([]cluster.Outcome, error)
	// Watch waits until a slot, the role or the timeline of the node is no
	// longer as since says, the token of an earlier Watch; with "" it returns at
	// once, with Changed. Where target is given it waits for that position to be
	// replayed as well. It gives neither where the waiting ended otherwise: ctx,
	// or the node's own limit. An error says that this node cannot be waited on
	// for now.
	Watch(ctx context.Context, since string, target cluster.Opt[cluster.LSN]) (cluster.Watched, error)
	// Close ends the sessions. It does not wait for the server.
	Close()
}

// Dialer gives the node of a member. It does not connect: the first Read does.
type Dialer func(cluster.Member) (Node, error)

// Elector gives leadership.
type Elector interface {
	// Campaign waits until this controller leads, or ctx ends.
	Campaign(ctx context.Context) (Term, error)
	// Load reads the ledger as a follower, part by part.
	Load(ctx context.Context) (map[string][]byte, error)
}

// Term is one leadership: nothing is written to any server outside of it.
type Term interface {
	Epoch() cluster.Epoch
	Store() string
	// Valid reports whether the lease still holds by this process's own clock.
	Valid(now time.Time) bool
	// Context ends with the leadership.
	Context() context.Context
	// Load reads the ledger, part by part.
	Load(ctx context.Context) (map[string][]byte, error)
	// Save writes parts, all of them or none, if this term still leads and nobody
	// else moved them.
	Save(ctx context.Context, parts map[string][]byte) error
	// Space says how full the store is.
	Space(ctx context.Context) (Space, error)
	// Resign gives the leadership back at once.
	Resign(ctx context.Context) error
}

// reasoned is what a Node's read error may be, to name its verdict reason.
type reasoned interface {
	error
	Reason() string
}

// hinted is what a Node's read error may be, to say what to do about it.
type hinted interface {
	error
	Hint() string
}
