package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// A program that goes through the lists of a plan finds lists, also where there is
// nothing to do.
func TestAnIdlePlanHoldsLists(t *testing.T) {
	var b bytes.Buffer
	if err := output.Write(&b, output.JSON, planResult(plan.Plan{Primary: "a"})); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"steps", "verdicts", "conditions"} {
		if !strings.Contains(b.String(), `"`+list+`": []`) {
			t.Errorf("%s is no list in %s", list, b.String())
		}
	}
}
