package cases

import (
	"syscall"
	"testing"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D06: one backend of the primary is killed. All others go too, and what the
// walsender had set in memory only is forgotten: the physical slot pins nothing
// until the standby is back.
func TestD06OneBackendCrashes(t *testing.T) {
	t.Parallel()
	s := harness.Mirrored(t, harness.Options{OnB: withFeedback(), Settings: harness.Still()})
	s.FeedbackPins(s.B, true)
	s.FreezeDaemon()

	s.Reshape(s.A)
	want := s.Peek(s.A, "cdc")
	s.Pass(s.A, "cdc")
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	receiver := s.Background(s.B, "walreceiver")
	s.OK(syscall.Kill(receiver, syscall.SIGSTOP))
	postmaster, directory := s.A.PID(), s.Incarnation(s.A, s.B.SlotName())
	s.CrashBackend(s.A)
	s.FeedbackPins(s.B, false)
	s.VacuumCatalogs(s.A)
	s.OK(syscall.Kill(receiver, syscall.SIGCONT))
	s.FeedbackPins(s.B, true)
	if s.A.PID() != postmaster || s.Incarnation(s.A, s.B.SlotName()) != directory {
		t.Error("the scene is not set: postmaster or physical slot is another one")
	}
	s.OK(s.B.WaitCatchup(s.Ctx, s.A))
	s.FailOver(s.B)
	s.Same(s.Get(s.B, "cdc"), want)
}
