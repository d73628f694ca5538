package failover

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// C01, by force: a slot that is made anew at "now" on the promoted node skips
// all that nobody had read. The account must say which rows.
func TestC01AccountFindsASlotMadeAnew(t *testing.T) {
	report, err := lab.Failover(t.Context(), lab.Scenario{
		Seed: 1, Standbys: 1, Binary: harness.Binary(t),
		Sabotage: func(ctx context.Context, promoted *lab.Node) error {
			if err := promoted.RollbackPrepared(ctx); err != nil {
				return err
			}
			return promoted.Exec(ctx, `SELECT pg_drop_replication_slot('audit');
				SELECT pg_create_logical_replication_slot('audit', 'pgoutput')`)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	busy, idle := report.Accounts[0], report.Accounts[1]
	if !busy.Clean() || busy.Committed == 0 {
		t.Errorf("the slot that was left alone: %+v", busy)
	}
	if report.OK() || len(idle.Lost) == 0 || idle.Delivered+len(idle.Lost) != idle.Committed {
		t.Errorf("%d of %d rows came, %d are lost, and the report is ok: %v", idle.Delivered, idle.Committed, len(idle.Lost), report.OK())
	}
	if !slices.ContainsFunc(report.LostRows(), func(line string) bool { return strings.HasPrefix(line, "slot audit lost ") }) {
		t.Errorf("the lost rows are not named: %q", report.LostRows())
	}
}

// A slot that is gone is no success either, and the round still comes to its account.
func TestAccountOfASlotThatIsGone(t *testing.T) {
	report, err := lab.Failover(t.Context(), lab.Scenario{
		Seed: 2, Standbys: 1, Binary: harness.Binary(t),
		Sabotage: func(ctx context.Context, promoted *lab.Node) error {
			return promoted.Exec(ctx, `SELECT pg_drop_replication_slot('orders')`)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.OK() || report.Mirrored || report.Lost() == 0 {
		t.Errorf("mirrored is %v, lost are %d, ok is %v", report.Mirrored, report.Lost(), report.OK())
	}
	if !slices.ContainsFunc(report.Errors, func(line string) bool { return strings.Contains(line, `slot "orders" is not on the promoted node`) }) {
		t.Errorf("the missing slot is not named: %q", report.Errors)
	}
}
