//go:build patroni

package patroni

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// What is unsound about the cluster as Patroni's keys show it is said while it lasts:
// physical slots are switched off, a key cannot be read, and two members have names
// that become one slot's.
func TestUnsoundConfiguration(t *testing.T) {
	t.Parallel()
	s := mirrored(t, nil)
	useSlots := func(on bool) {
		s.in(func(ctx context.Context) error {
			return s.p.PatchConfig(ctx, map[string]any{"postgresql": map[string]any{"use_slots": on}})
		})
	}
	put := func(key, value string) {
		s.in(func(ctx context.Context) error { return s.p.Put(ctx, key, value) })
	}
	useSlots(false)
	s.told(plan.CondUseSlotsOff, "")
	useSlots(true)
	s.untold(plan.CondUseSlotsOff)

	put("failsafe", "rubbish")
	s.told(plan.CondPatroniUnreadable, "failsafe")
	put("failsafe", "{}")
	s.untold(plan.CondPatroniUnreadable)

	name := s.standbys()[0].Name()
	double := strings.ToUpper(name)
	put("members/"+double, `{"conn_url":"postgres://127.0.0.1:1/postgres","state":"stopped","role":"replica"}`)
	s.told(plan.CondPhysicalSlotShared, name)
	s.in(func(ctx context.Context) error {
		client, err := s.p.Etcd().Client(ctx)
		if err != nil {
			return err
		}
		_, err = client.Delete(ctx, "/service/"+s.p.Scope()+"/members/"+double)
		return errors.Join(err, client.Close())
	})
	s.untold(plan.CondPhysicalSlotShared)
	s.safe("cdc")
}
