package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// C01: a slot must never be made anew at "now" after a promotion. With a SAFE
// mirror all rows that the consumer had not read arrive.
func TestC01MirroredRowsArrive(t *testing.T) {
	s := harness.New(t, harness.Options{})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.Run()
	s.Safe([]string{"cdc"})
	s.Exec(s.A, "INSERT INTO t SELECT generate_series(1, 1000)")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.StopDaemon()
	s.FailOver(s.B)
	if rows := s.Get(s.B, "cdc"); len(rows) != 1000 {
		t.Errorf("%d of 1000 rows arrived", len(rows))
	}
}
