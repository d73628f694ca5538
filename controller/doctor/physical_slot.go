package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkPhysicalSlot: the slot through which a standby streams keeps the WAL that
// it still needs. It is never ours to touch.
func checkPhysicalSlot(w *ward) []Finding {
	if w.primary == nil {
		return nil
	}
	read, ok := w.primary.read()
	if !ok {
		return nil
	}
	var found []Finding
	for _, m := range w.standbys() {
		name, known := m.setting("primary_slot_name")
		f := Finding{Severity: plan.Warning, Subject: m.Name}
		switch s := named(read.Slots, name); {
		case !known:
			continue
		case name == "":
			f.Code, f.Message = plan.CondPhysicalSlotMissing, fmt.Sprintf("%s has no primary_slot_name: the primary may remove WAL that it still needs", m.Name)
			f.Hint = "create a physical slot on the primary and name it there"
		case s == nil:
			f.Code, f.Message = plan.CondPhysicalSlotMissing, fmt.Sprintf("the primary %s has no physical slot %s, which primary_slot_name of %s names", w.primary.Name, name, m.Name)
			f.Hint = "create it, or the standby cannot stream; a cascading standby has its slot on another standby, and needs nothing here"
		case s.Invalidated != "":
			f.Code, f.Message = plan.CondPhysicalSlotInvalidated, fmt.Sprintf("the physical slot %s of %s on the primary %s is invalidated (%s)", name, m.Name, w.primary.Name, s.Invalidated)
			f.Hint = "make it anew; the standby streams only while the WAL is still there by chance"
		case s.ActivePID == 0:
			f.Code, f.Message = CodePhysicalSlotInactive, fmt.Sprintf("nobody streams through the physical slot %s of %s on the primary %s", name, m.Name, w.primary.Name)
			f.Hint = "see the standby's log for why it does not connect; the slot keeps WAL on the primary meanwhile"
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}
