package harness

import (
	"strings"
)

// Logged waits until the controller's log says something.
func (s *Scene) Logged(text string) {
	s.T.Helper()
	s.Wait("the controller to log "+text, func() (bool, string) {
		return strings.Contains(s.Daemon.LogTail(10000), text), "it has not"
	})
}
