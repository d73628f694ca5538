package lab

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Truth is what a node holds of the load: what a consumer must have received.
type Truth struct {
	parts    map[txID][]int32 // sorted
	messages []string
}

// ReadTruth reads the load's tables on a node. A message counts where its
// record came to that node: it was written there, or it ended at or before
// fork, where the node's timeline began.
func ReadTruth(ctx context.Context, node *Node, load *Load, fork cluster.LSN) (Truth, error) {
	truth := Truth{parts: map[txID][]int32{}}
	conn, err := node.Connect(ctx, "", "")
	if err != nil {
		return truth, fmt.Errorf("reading what is committed: %w", err)
	}
	defer closeConn(conn)
	rows, err := conn.Query(ctx, `SELECT writer, tx, part FROM lab_rows UNION ALL SELECT writer, tx, part FROM lab_changing ORDER BY 1, 2, 3`)
	if err != nil {
		return truth, fmt.Errorf("reading what is committed on node %q: %w", node.name, err)
	}
	var id RowID
	_, err = pgx.ForEachRow(rows, []any{&id.Writer, &id.Tx, &id.Part}, func() error {
		truth.parts[id.transaction()] = append(truth.parts[id.transaction()], id.Part)
		return nil
	})
	if err != nil {
		return truth, fmt.Errorf("reading what is committed on node %q: %w", node.name, err)
	}
	for _, message := range load.Messages() {
		if message.Node == node.name || message.End <= fork {
			truth.messages = append(truth.messages, message.Key)
		}
	}
	return truth, nil
}

// Unreplicated counts the rows that a server acknowledged and that are not in
// the truth: what asynchronous replication lost, whatever became of the slots.
func (l *Load) Unreplicated(truth Truth) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows := 0
	for tx, count := range l.acknowledged {
		if _, there := truth.parts[tx]; !there {
			rows += count
		}
	}
	return rows
}

// Account is what became of the rows that should have come through one slot.
type Account struct {
	Slot       string
	Committed  int // rows that should have come
	Delivered  int // of these, the ones that came
	Duplicated int // deliveries of rows that had come before
	Lost       []RowID
	Messages   int      // non-transactional messages that should have come
	LostNotes  []string // the ones that did not
	Gone       int      // rows that came and that the promoted node never got
	Problems   []string // half transactions, wrong order, wrong contents, duplicates out of bounds
}

// Clean reports whether nothing was lost and nothing came wrong.
func (a Account) Clean() bool {
	return len(a.Lost) == 0 && len(a.LostNotes) == 0 && len(a.Problems) == 0
}

// Bounds say what a slot owes.
type Bounds struct {
	// From is where the slot began, 0 for the beginning of the load. What
	// committed before it is not owed. Messages are only owed from the beginning.
	From cluster.LSN
	// Positions has the confirmed_flush_lsn at which each stream found the
	// slot: it may send nothing that committed before.
	Positions map[int]cluster.LSN
}

// Account compares what came with the truth. Where committed transactions began
// and ended is taken from reference, which must have received all; a slot that
// owes everything is its own reference.
func (d *Deliveries) Account(slot string, truth Truth, bounds Bounds, reference *Deliveries) Account {
	commits := reference.commits()
	d.mu.Lock()
	defer d.mu.Unlock()
	account := Account{Slot: slot, Problems: slices.Clone(d.problems)}
	seen := map[RowID]int{}
	last := map[[2]int]int64{}
	lastCommit := map[int]cluster.LSN{}
	for _, delivery := range d.all {
		account.check(delivery, truth, bounds, last, lastCommit)
		for _, part := range delivery.Parts {
			seen[RowID{delivery.Writer, delivery.Tx, part}]++
		}
	}
	for tx, parts := range truth.parts {
		commit, known := commits[tx]
		if bounds.From > 0 && known && commit < bounds.From {
			continue
		}
		for _, part := range parts {
			account.count(RowID{tx.writer, tx.tx, part}, seen)
		}
	}
	slices.SortFunc(account.Lost, compareRows)
	if bounds.From == 0 {
		account.owe(truth.messages, d.messages)
	}
	return account
}

func (a *Account) count(id RowID, seen map[RowID]int) {
	a.Committed++
	if seen[id] == 0 {
		a.Lost = append(a.Lost, id)
		return
	}
	a.Delivered++
	a.Duplicated += seen[id] - 1
}

// check looks at one delivery: is it whole, in order, and not older than what the slot owes?
func (a *Account) check(delivery Delivery, truth Truth, bounds Bounds, last map[[2]int]int64, lastCommit map[int]cluster.LSN) {
	want, there := truth.parts[delivery.id()]
	got := slices.Sorted(slices.Values(delivery.Parts))
	switch {
	case !there:
		a.Gone += len(delivery.Parts)
	case !slices.Equal(got, want):
		a.Problems = append(a.Problems, fmt.Sprintf("transaction %s came from node %q with the rows %v, committed are %v",
			delivery.id(), delivery.Node, got, want))
	}
	key := [2]int{delivery.Stream, int(delivery.Writer)}
	if before := last[key]; delivery.Tx <= before {
		a.Problems = append(a.Problems, fmt.Sprintf("transaction %s came from node %q after %d of the same writer", delivery.id(), delivery.Node, before))
	}
	last[key] = delivery.Tx
	if delivery.Commit <= lastCommit[delivery.Stream] {
		a.Problems = append(a.Problems, fmt.Sprintf("transaction %s, committed at %s, came from node %q after one of %s",
			delivery.id(), delivery.Commit, delivery.Node, lastCommit[delivery.Stream]))
	}
	lastCommit[delivery.Stream] = delivery.Commit
	if position, known := bounds.Positions[delivery.Stream]; known && delivery.Commit < position {
		a.Problems = append(a.Problems, fmt.Sprintf("transaction %s, committed at %s, came from node %q though its slot was at %s",
			delivery.id(), delivery.Commit, delivery.Node, position))
	}
}

func (a *Account) owe(messages []string, got map[string]int) {
	a.Messages = len(messages)
	for _, key := range messages {
		if got[key] == 0 {
			a.LostNotes = append(a.LostNotes, key)
		}
	}
}

// commits gives where each transaction committed; on the last timeline that
// sent it, where a transaction came more than once.
func (d *Deliveries) commits() map[txID]cluster.LSN {
	d.mu.Lock()
	defer d.mu.Unlock()
	commits := map[txID]cluster.LSN{}
	for _, delivery := range d.all {
		commits[delivery.id()] = delivery.Commit
	}
	return commits
}

func compareRows(a, b RowID) int {
	for _, diff := range []int64{int64(a.Writer - b.Writer), a.Tx - b.Tx, int64(a.Part - b.Part)} {
		if diff != 0 {
			return int(max(-1, min(1, diff)))
		}
	}
	return 0
}
