package lab

import (
	"testing"
	"testing/synctest"
)

// A paused writer begins nothing, and ends with its load all the same.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Load{stop: make(chan struct{})}
		works := func() *bool {
			done := false
			go func() {
				l.waitPaused(t.Context())
				done = true
			}()
			synctest.Wait()
			return &done
		}
		if !*works() {
			t.Error("writers wait though nobody has paused them")
		}
		l.Pause()
		l.Pause()
		first := works()
		if *first {
			t.Error("a paused writer goes on")
		}
		l.Resume()
		l.Resume()
		synctest.Wait()
		if !*first || !*works() {
			t.Error("writers wait after Resume")
		}
		l.Pause()
		last := works()
		close(l.stop)
		synctest.Wait()
		if !*last {
			t.Error("a paused load does not end")
		}
	})
}
