package controller

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// After a promotion each of many slots may have a condition. The part that must be
// written before a new generation is used is taken all the same, also by whom it
// is the first: else no controller could lead any more.
func TestManyConditionsDoNotKeepAGenerationFromTheLedger(t *testing.T) {
	for _, many := range []int{500, 8000} {
		s := newStage(t)
		s.cycle(t)
		doc, _ := s.c.Status()
		random := rand.New(rand.NewPCG(1, 2))
		for i := range many {
			doc.Conditions = append(doc.Conditions, status.Finding{Code: plan.CondSlotMissing, Subject: fmt.Sprintf("slot_%d", i), Severity: plan.Critical,
				Message: fmt.Sprintf("slot slot_%d did not come through the promotion to b (timeline 2): it was last seen at %x/%x", i, random.Uint32(), random.Uint32()),
				Hint:    "it is never made again at the current position: its consumer must know that rows are missing, and start anew"})
		}
		s.c.shown.Store(&doc)
		s.c.ledger.generation = 0
		if err := s.c.rememberFirst(t.Context(), s.c.memory); err != nil {
			t.Fatal(err)
		}
		check := func() {
			text := s.term.parts[status.PartCluster]
			if len(text) > 64<<10 {
				t.Errorf("%d conditions: the part has %d bytes", many, len(text))
			}
			kept, err := status.FromLedger(map[string][]byte{status.PartCluster: text})
			if err != nil || len(kept.Conditions) == 0 || many == 500 && len(kept.Conditions) < many {
				t.Errorf("%d conditions: the ledger has %d: %v", many, len(kept.Conditions), err)
			}
		}
		check()
		s.c.recordLast()
		check()
	}
}
