package etcd

import (
	"strings"
	"testing"
)

// The record of a switchover is written once, changed and removed only as it was
// last seen, and bounded.
func TestSwitchoverRecord(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		a, b := open(t, options(t, url)), open(t, options(t, url))
		ctx := t.Context()
		read := func(c *Client, want string) int64 {
			t.Helper()
			text, revision, err := c.Switchover(ctx)
			if err != nil || string(text) != want || (revision == 0) != (want == "") {
				t.Fatalf("%q at %d, %v; want %q", text, revision, err, want)
			}
			return revision
		}
		put := func(c *Client, text string, revision int64, want bool) {
			t.Helper()
			if written, err := c.PutSwitchover(ctx, []byte(text), revision); err != nil || written != want {
				t.Fatalf("writing %q over %d: %v, %v", text, revision, written, err)
			}
		}
		read(a, "")
		put(a, "one", 0, true)
		put(b, "two", 0, false)
		first := read(b, "one")
		put(b, "three", first, true)
		put(a, "four", first, false)
		if removed, err := a.EndSwitchover(ctx, first); err != nil || removed {
			t.Errorf("removed %v, %v, and it was changed", removed, err)
		}
		if removed, err := a.EndSwitchover(ctx, read(a, "three")); err != nil || !removed {
			t.Errorf("removed %v, %v", removed, err)
		}
		read(b, "")
		if _, err := a.PutSwitchover(ctx, []byte(strings.Repeat("x", maxSwitchover+1)), 0); err == nil {
			t.Error("a record of any length is written")
		}
		read(b, "")
	})
}
