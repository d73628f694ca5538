package harness

import (
	"os"
	"strings"
	"syscall"
	"time"
)

// Reload has the controller read its configuration again, with these changes of
// its text, old and new in turn, and waits until it has.
func (s *Scene) Reload(changes ...string) {
	s.T.Helper()
	text, err := os.ReadFile(s.Daemon.Config())
	s.OK(err)
	changed := strings.NewReplacer(changes...).Replace(string(text))
	if changed == string(text) {
		s.T.Fatalf("nothing of %q is in the configuration:\n%s", changes, text)
	}
	s.OK(os.WriteFile(s.Daemon.Config(), []byte(changed), 0o600))
	before := s.reloads()
	s.signalDaemon(syscall.SIGHUP)
	s.Wait("the controller to have read its configuration", func() (bool, string) {
		return s.reloads() > before, "it has not said so"
	})
}

func (s *Scene) reloads() int {
	s.T.Helper()
	times := 0
	for _, line := range s.Log() {
		if line["@message"] == "configuration reloaded" {
			times++
		}
	}
	return times
}

// Lasts waits until the controller has looked at everything for so long: for what
// must not happen within that time.
func (s *Scene) Lasts(during time.Duration) {
	s.T.Helper()
	began := time.Now()
	s.Wait("the controller to go on for "+during.String(), func() (bool, string) {
		doc, ok := s.Status()
		return ok && doc.ObservedAt.Sub(began) > during, "it has not"
	})
}
