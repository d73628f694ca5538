package lab

import (
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// A copy of a busy standby, promoted, has exactly what its WAL says: each
// transaction that committed at or after a position is owed from it, and no other.
func TestCopyOwesWhatItsWALSays(t *testing.T) {
	ctx, c := newLab(t)
	a := must(c.AddPrimary(ctx, "a"))(t)
	ok(t, SetupLoad(ctx, a))
	b := must(c.AddStandby(ctx, "b", a, StandbyOptions{}))(t)
	begin := must(a.CurrentLSN(ctx))(t)
	load := StartLoad(ctx, a, LoadOptions{Seed: 1, After: 1000, Short: 1, Nested: 1, Long: 1, Changing: 1, Messages: 1})
	half := func(rows int) cluster.LSN {
		err := poll(ctx, 5*time.Millisecond, "the load to work", func() (bool, error) { return load.Acknowledged() >= rows, nil })
		ok(t, err)
		return must(a.CurrentLSN(ctx))(t)
	}
	middle := half(200)
	ok(t, b.WaitReplay(ctx, half(400)))

	d := must(c.NewNode("d"))(t)
	ok(t, d.CopyOf(ctx, b))
	ok(t, b.WaitCatchup(ctx, a)) // it goes on
	ok(t, d.Start(ctx))
	ok(t, d.Promote(ctx))
	sentinel := must(load.SentinelOn(ctx, d))(t)
	ok(t, load.Stop(ctx))
	fork := must(d.Fork(ctx))(t)

	all := must(ReadOwed(ctx, d, begin, fork))(t)
	truth := must(ReadTruth(ctx, d, load, fork))(t)
	delete(truth.parts, sentinel.transaction())
	owed := all.Since(begin)
	if rows(owed) < 400 || rows(owed) != rows(truth) {
		t.Errorf("%d rows are owed, %d are there", rows(owed), rows(truth))
	}
	if want := len(truth.messages); c.decodesMessages() && (want == 0 || len(owed.messages) < want) {
		t.Errorf("%d messages are owed, %d came", len(owed.messages), want)
	}
	if later := rows(all.Since(middle)); later == 0 || later >= rows(owed) {
		t.Errorf("from the middle on %d of %d rows are owed", later, rows(owed))
	}
	if none := rows(all.Since(fork)); none != 0 {
		t.Errorf("from the end on %d rows are owed", none)
	}

	ok(t, c.Remove(ctx, d))
	if _, err := c.NewNode("d"); err != nil {
		t.Errorf("its name is not free: %v", err)
	}
}

func rows(truth Truth) int {
	count := 0
	for _, parts := range truth.parts {
		count += len(parts)
	}
	return count
}
