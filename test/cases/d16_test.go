package cases

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D16: feedback goes off and on again between two reads, and rows go in
// between: the physical slot looks afterwards as it did before.
func TestD16FeedbackOffAndOn(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{OnB: withFeedback(), Settings: harness.Still()})
	s.FeedbackPins(s.B, true)
	s.FreezeDaemon()

	s.OK(s.B.Set(s.Ctx, map[string]string{"hot_standby_feedback": "off"}))
	s.FeedbackPins(s.B, false)
	want := s.Outdate(s.A, "cdc")
	s.OK(s.B.Set(s.Ctx, map[string]string{"hot_standby_feedback": "on"}))
	s.FeedbackPins(s.B, true)
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}

// The configuration file says on, and the server has not read it.
func TestD16EditedNotReloaded(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Logical(s.A, "cdc")
	s.Exec(s.B, "ALTER SYSTEM SET hot_standby_feedback = on")
	s.Run()
	s.Safe([]string{"cdc"})
	s.Condition(plan.CondFeedbackOff)
	s.FreezeDaemon()

	want := s.Outdate(s.A, "cdc")
	s.FeedbackPins(s.B, false)
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}

func withFeedback() lab.StandbyOptions {
	return lab.StandbyOptions{Feedback: true, Settings: map[string]string{"wal_receiver_status_interval": "1s"}}
}
