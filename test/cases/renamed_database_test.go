package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// A database is renamed in the last moment before its primary dies, and the controller
// has not read that. The slots are the ones that they were: nobody has to start anew,
// and the other standby's mirrors stay.
func TestDatabaseRenamedBeforeAPromotion(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Standbys: 2, Settings: harness.Still()})
	s.Exec(s.A, "CREATE DATABASE app")
	s.OK(s.A.DB("app").Exec(s.Ctx, "SELECT pg_create_logical_replication_slot('cdc', 'test_decoding')"))
	s.Run()
	s.Safe([]string{"cdc"})
	s.FreezeAtRest()
	s.Exec(s.A, "ALTER DATABASE app RENAME TO shop")
	s.Level()
	s.OK(s.A.Kill(s.Ctx))
	s.OK(s.B.Promote(s.Ctx))
	s.Leads(s.B)
	s.Behind(s.C)
	s.ThawDaemon()
	s.Safe([]string{"cdc"}, s.C)
	doc, _ := s.Status()
	for _, found := range doc.Conditions {
		if found.Code == plan.CondSlotRecreated || found.Code == plan.CondMirrorReplaced {
			t.Errorf("%s of %s: %s", found.Code, found.Subject, found.Message)
		}
	}
}
