package standby

import (
	"strconv"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/postgres"
)

// columns holds changes as one array per field, which the server makes
// composites of.
type columns struct {
	names, plugins, databases   []string
	twoPhase                    []bool
	twoPhaseAt                  []*string
	restarts, confirmeds, xmins []string
	snapshots                   [][]byte // nil is NULL
	snapshotsAt                 []*string
	sources                     []cluster.Opt[cluster.Incarnation]
	resumes                     []*string
}

func newColumns(changes []cluster.Change) *columns {
	c := &columns{}
	for _, ch := range changes {
		c.names = append(c.names, ch.Name)
		c.plugins = append(c.plugins, ch.Plugin)
		c.databases = append(c.databases, strconv.FormatUint(uint64(ch.DatabaseOID), 10))
		c.twoPhase = append(c.twoPhase, ch.TwoPhase)
		c.twoPhaseAt = append(c.twoPhaseAt, postgres.LSNArg(ch.TwoPhaseAt))
		c.restarts = append(c.restarts, ch.Position.Restart.String())
		c.confirmeds = append(c.confirmeds, ch.Position.Confirmed.String())
		c.xmins = append(c.xmins, ch.Position.CatalogXmin.String())
		c.snapshots = append(c.snapshots, snapshot(ch.Snapshot))
		c.snapshotsAt = append(c.snapshotsAt, postgres.LSNArg(ch.SnapshotAt))
		c.sources = append(c.sources, cluster.Some(ch.Source))
		c.resumes = append(c.resumes, resume(ch.Resume))
	}
	return c
}

func (c *columns) args() []any {
	inodes, births := postgres.IncarnationArgs(c.sources)
	return []any{
		c.names, c.plugins, c.databases, c.twoPhase, c.twoPhaseAt, c.restarts, c.confirmeds, c.xmins,
		c.snapshots, inodes, births, c.resumes, c.snapshotsAt,
	}
}

// snapshot keeps a file of no bytes apart from no file.
func snapshot(file cluster.Opt[[]byte]) []byte {
	if !file.OK {
		return nil
	}
	return append([]byte{}, file.V...)
}

func resume(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
