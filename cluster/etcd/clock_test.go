package etcd

import (
	"testing"
	"time"
	"unsafe"
)

// stepped is a moment at which the machine's clock shows so many seconds more, or
// less, than have passed: package time has no way to make one, so the wall clock's
// part of it, seconds above 30 bits of nanoseconds, is changed in place.
func stepped(t *testing.T, at time.Time, seconds int64) time.Time {
	t.Helper()
	was := at
	*(*uint64)(unsafe.Pointer(&at)) += uint64(seconds << 30)
	if at.Sub(was) != 0 || at.Round(0).Sub(was.Round(0)) != time.Duration(seconds)*time.Second {
		t.Fatalf("package time has changed: %v is not %v with its clock stepped by %d s", at, was, seconds)
	}
	return at
}

// C42: the clock of the machine is set, or stood still with it. No step makes a
// lease last longer: it ends by the clock or by the time that has passed, whichever
// says so first.
func TestNoStepOfTheClockProlongsALease(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	term := &Term{ttl: 10 * time.Second, sent: sent, ctx: t.Context()} // until 8 s after sending
	for name, c := range map[string]struct {
		passed time.Duration
		step   int64
		valid  bool
	}{
		"no step":                                {time.Second, 0, true},
		"a little, within the lease":             {time.Second, 3, true},
		"back by an hour, and it is over":        {9 * time.Second, -3600, false},
		"back by a moment, and it is over":       {9 * time.Second, -3, false},
		"ahead, as after the machine's sleep":    {time.Second, 8, false},
		"ahead by a year":                        {time.Second, 365 * 86400, false},
		"back by an hour, and it is not over":    {time.Second, -3600, true},
		"ahead beyond what the lease has left":   {6 * time.Second, 3, false},
		"ahead, and not beyond what it has left": {5 * time.Second, 2, true},
	} {
		if got := term.Valid(stepped(t, sent.Add(c.passed), c.step)); got != c.valid {
			t.Errorf("%s: after %s, by the clock %s later, the term is valid: %t", name, c.passed, c.passed+time.Duration(c.step)*time.Second, got)
		}
	}
}
