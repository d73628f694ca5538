package plan

import (
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func (w *world) hold(node string) *cluster.Slot { return w.servers[node].slots[cluster.HoldName] }

func setXmin(s *cluster.Slot, x cluster.XID) {
	s.CatalogXmin, s.EffectiveCatalogXmin = cluster.Some(x), cluster.Some(x)
}

// settled is a world in which slot app is mirrored on b and c and all is quiet.
func settled(t *testing.T) *world {
	t.Helper()
	w := newWorld("b", "c")
	w.createSlot("app")
	w.turns(3)
	w.mustBe(t, "app", "b", Safe, "")
	w.mustBe(t, "app", "c", Safe, "")
	return w
}

func (w *world) mustBe(t *testing.T, slot, standby string, state State, reason Reason) {
	t.Helper()
	v := w.verdict(slot, standby)
	if v.State != state || v.Reason != reason {
		t.Fatalf("%s on %s is %s(%s) %q, want %s(%s)\nplan: %s", slot, standby, v.State, v.Reason, v.Message, state, reason, describe(w.plan))
	}
}

// mustBeMadeAnew wants the mirror of app to be well once the node has replayed all.
func (w *world) mustBeMadeAnew(t *testing.T, node string) {
	t.Helper()
	w.replayAll()
	w.turns(3)
	w.mustBe(t, "app", node, Safe, "")
	if why := w.decoder(node, "app"); why != "" {
		t.Error(why)
	}
}

// comesBackWithNothingProven has a server be a member again, with a mirror of app that
// looks well and from which no decoder could go on: it is seen through, and b's stays.
func (w *world) comesBackWithNothingProven(t *testing.T, name string, s *server) {
	t.Helper()
	w.servers[name], s.up = s, true
	if w.decoder(name, "app") == "" {
		t.Fatal("the scene is not set: a decoder could go on")
	}
	w.turn()
	w.mustBe(t, "app", name, Unsafe, ReasonProtectionGap)
	w.mustBe(t, "app", "b", Safe, "")
	w.mustBeMadeAnew(t, name)
}

func describe(pl Plan) string {
	var b strings.Builder
	for _, s := range pl.Steps {
		b.WriteString("\n  " + s.ID + " needs " + strings.Join(s.Needs, ",") + ": " + s.Why)
	}
	return b.String()
}

func kinds(pl Plan) map[string]bool {
	ids := map[string]bool{}
	for _, s := range pl.Steps {
		ids[s.ID] = true
	}
	return ids
}
