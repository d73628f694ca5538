package etcd

import (
	"context"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestKeysOfOthers(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		c := open(t, options(t, url))
		folder := "/service/" + scopeOf(t)
		put := func(name, value string) {
			t.Helper()
			if _, err := c.v3.Put(t.Context(), folder+name, value); err != nil {
				t.Fatal(err)
			}
		}
		put("/leader", "a")
		put("2/leader", "of another scope")
		read, err := c.ReadKeys(t.Context(), folder)
		if err != nil || len(read.Values) != 1 || string(read.Values["leader"]) != "a" || read.Revision == 0 || read.Modified["leader"] == 0 || read.Modified["leader"] > read.Revision {
			t.Fatalf("%+v %v", read, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		told := c.WatchKeys(ctx, folder+"/")
		var last cluster.Keys
		await := func(what string, ok func() bool) {
			t.Helper()
			eventually(t, what, func() bool {
				select {
				case last = <-told:
				default:
				}
				return ok()
			})
		}
		await("the keys as they are", func() bool { return string(last.Values["leader"]) == "a" })
		put("/leader", "b")
		put("/members/x", "{}")
		await("two changes", func() bool { return string(last.Values["leader"]) == "b" && string(last.Values["members/x"]) == "{}" })
		if last.Modified["leader"] <= read.Modified["leader"] || last.Modified["members/x"] <= last.Modified["leader"] || last.Modified["members/x"] > last.Revision {
			t.Errorf("%v at %d", last.Modified, last.Revision)
		}
		if _, err := c.v3.Delete(t.Context(), folder+"/leader"); err != nil {
			t.Fatal(err)
		}
		await("a deletion", func() bool {
			_, there := last.Values["leader"]
			return !there && last.Err == nil && len(last.Values) == 1 && len(last.Modified) == 1
		})
		cancel()
		for range told {
		}
	})
}
