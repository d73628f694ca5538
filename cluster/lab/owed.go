package lab

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Owed is what slots of a node owe their consumers, found without any decoding:
// which transactions committed where stands in the WAL (pg_waldump reads it), and
// which rows are theirs in the tables.
type Owed struct {
	commits  []walRecord // of transactions, by where their commit records begin
	messages []walRecord // of the load, not transactional
	rows     []owedRow
}

type walRecord struct {
	at  cluster.LSN
	xid cluster.XID
	key string
}

type owedRow struct {
	id  RowID
	xid cluster.XID
}

// ReadOwed reads what a running node wrote or replayed in [from, to), on whatever
// timelines, and what its tables hold. The WAL must still be there.
func ReadOwed(ctx context.Context, node *Node, from, to cluster.LSN) (*Owed, error) {
	o := &Owed{}
	spans, err := node.spans(ctx, from, to)
	if err != nil {
		return nil, fmt.Errorf("reading what node %q owes: %w", node.name, err)
	}
	for _, s := range spans {
		if err := o.readWAL(ctx, node, s); err != nil {
			return nil, fmt.Errorf("reading what node %q owes from %s to %s on timeline %d: %w", node.name, s.from, s.to, s.timeline, err)
		}
	}
	return o, o.readRows(ctx, node)
}

// Since is what a slot must send whose confirmed_flush_lsn is position.
func (o *Owed) Since(position cluster.LSN) Truth {
	truth := Truth{parts: map[txID][]int32{}}
	committed := map[cluster.XID]bool{}
	for _, c := range o.commits {
		committed[c.xid] = committed[c.xid] || c.at >= position
	}
	for _, row := range o.rows {
		if committed[row.xid] {
			truth.parts[row.id.transaction()] = append(truth.parts[row.id.transaction()], row.id.Part)
		}
	}
	for _, m := range o.messages {
		if m.at >= position {
			truth.messages = append(truth.messages, m.key)
		}
	}
	return truth
}

// span is a stretch of WAL on one timeline.
type span struct {
	timeline uint64
	from, to cluster.LSN
}

// file is the name of its WAL file that holds a position.
func (s span) file(at cluster.LSN) string {
	number := uint64(at) / segment
	return fmt.Sprintf("%08X%08X%08X", s.timeline, number/(1<<32/segment), number%(1<<32/segment))
}

// segment is the size of a WAL file that initdb takes.
const segment = 16 << 20

// spans divides a stretch of WAL by the node's own history. The segment in which a
// timeline begins is read from its own file, which begins with a copy of what came
// before: a standby made on that timeline has no other.
func (n *Node) spans(ctx context.Context, from, to cluster.LSN) ([]span, error) {
	var file string
	if err := n.QueryRow(ctx, "SELECT pg_walfile_name(pg_current_wal_lsn())").Scan(&file); err != nil {
		return nil, err
	}
	current, err := strconv.ParseUint(file[:8], 16, 32)
	if err != nil {
		return nil, fmt.Errorf("reading the name of a WAL file: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(n.data, "pg_wal", file[:8]+".history"))
	if err != nil && (current > 1 || !errors.Is(err, os.ErrNotExist)) {
		return nil, err
	}
	var spans []span
	add := func(timeline uint64, end cluster.LSN) {
		if s := (span{timeline, from, min(end, to)}); s.from < s.to {
			spans = append(spans, s)
			from = s.to
		}
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		timeline, err := strconv.ParseUint(fields[0], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("reading the history of timeline %d: %w", current, err)
		}
		end, err := cluster.ParseLSN(fields[1])
		if err != nil {
			return nil, fmt.Errorf("reading the history of timeline %d: %w", current, err)
		}
		add(timeline, end/segment*segment)
	}
	add(current, to)
	return spans, nil
}

var (
	commitRecord  = regexp.MustCompile(`tx: +(\d+), lsn: ([0-9A-F]+/[0-9A-F]+), .*desc: COMMIT `)
	messageRecord = regexp.MustCompile(`lsn: ([0-9A-F]+/[0-9A-F]+), .*desc: MESSAGE non-transactional, prefix "` + messagePrefix + `"; payload \(\d+ bytes\): ([0-9A-F ]+)`)
)

func (o *Owed) readWAL(ctx context.Context, node *Node, s span) error {
	for _, manager := range []string{"Transaction", "LogicalMessage"} {
		// Without files it learns the size of segments from any there is, also from one
		// that is still being made.
		text, err := node.cluster.output(ctx, "pg_waldump", "--rmgr="+manager, "--start="+s.from.String(), "--end="+s.to.String(),
			filepath.Join(node.data, "pg_wal", s.file(s.from)), filepath.Join(node.data, "pg_wal", s.file(s.to-1)))
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(strings.NewReader(text))
		lines.Buffer(nil, 16<<20) // a commit lists its invalidations
		for lines.Scan() {
			if err := o.note(lines.Text()); err != nil {
				return err
			}
		}
		if err := lines.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (o *Owed) note(line string) error {
	if m := commitRecord.FindStringSubmatch(line); m != nil {
		xid, err := strconv.ParseUint(m[1], 10, 32)
		if err != nil {
			return err
		}
		at, err := cluster.ParseLSN(m[2])
		o.commits = append(o.commits, walRecord{at: at, xid: cluster.XID(xid)})
		return err
	}
	if m := messageRecord.FindStringSubmatch(line); m != nil {
		key, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
		if err != nil {
			return err
		}
		at, err := cluster.ParseLSN(m[1])
		o.messages = append(o.messages, walRecord{at: at, key: string(key)})
		return err
	}
	return nil
}

func (o *Owed) readRows(ctx context.Context, node *Node) error {
	rows, err := node.DB("").Strings(ctx, `SELECT concat_ws('.', writer, tx, part) || ' ' || top FROM lab_rows
		UNION ALL SELECT concat_ws('.', writer, tx, part) || ' ' || top FROM lab_changing`)
	if err != nil {
		return err
	}
	for _, text := range rows {
		name, top, _ := strings.Cut(text, " ")
		id, err := ParseRowID(name)
		if err != nil {
			return err
		}
		xid, err := strconv.ParseUint(top, 10, 64)
		if err != nil {
			return fmt.Errorf("reading the transaction of row %s: %w", id, err)
		}
		o.rows = append(o.rows, owedRow{id, cluster.XID(uint32(xid))}) // the epoch is not in the WAL
	}
	slices.SortFunc(o.rows, func(a, b owedRow) int { return compareRows(a.id, b.id) })
	return nil
}
