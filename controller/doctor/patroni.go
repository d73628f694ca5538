package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// CodeIgnoreSlotsWide: Patroni leaves more slots alone than are meant.
const CodeIgnoreSlotsWide = "ignore_slots_wide"

// checkPatroni: what Patroni would do to slots, and what its keys say that keeps
// slotkeeper from its work.
func checkPatroni(w *ward) []Finding {
	m := w.Manager
	if m == nil {
		return nil
	}
	found := append(patroniState(w), patroniSlots(w)...)
	for _, p := range m.Problems {
		found = append(found, Finding{Code: plan.CondPatroniUnreadable, Severity: plan.Warning, Subject: p.Key,
			Message: fmt.Sprintf("Patroni's key %s cannot be read: %s", p.Key, p.Text), Hint: "see who wrote it: nobody but Patroni should"})
	}
	if !m.UseSlots {
		found = append(found, Finding{Code: plan.CondUseSlotsOff, Severity: plan.Warning, Subject: "patroni",
			Message: "use_slots is off in Patroni's configuration: nothing keeps the WAL that a standby still needs",
			Hint:    "set postgresql.use_slots to true in the dynamic configuration"})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Slots.Members)) {
		if members := m.Slots.Members[name]; len(members) > 1 {
			found = append(found, Finding{Code: plan.CondPhysicalSlotShared, Severity: plan.Warning, Subject: name,
				Message: fmt.Sprintf("members %s share the physical slot %s: only one of them can stream through it", strings.Join(members, " and "), name),
				Hint:    "rename all but one of them"})
		}
	}
	return found
}

func patroniState(w *ward) []Finding {
	m := w.Manager
	var found []Finding
	if m.Paused {
		found = append(found, Finding{Code: plan.CondPaused, Severity: plan.Warning, Subject: "patroni",
			Message: "Patroni is paused: no mirror is made or dropped, and nobody is promoted by itself", Hint: "patronictl resume"})
	}
	switch {
	case m.StandbyCluster:
		found = append(found, Finding{Code: plan.CondStandbyCluster, Severity: plan.Info, Subject: "patroni",
			Message: "this is a standby cluster: nothing is mirrored here", Hint: "run slotkeeper on the cluster that takes the writes"})
	case !w.Leader.OK:
		found = append(found, Finding{Code: plan.CondNoLeader, Severity: plan.Warning, Subject: "patroni",
			Message: "Patroni has no leader: no mirror is made or dropped", Hint: "look at Patroni's logs, and at etcd"})
	case w.primary != nil && w.primary.Name != w.Leader.V:
		found = append(found, Finding{Code: plan.CondSplitBrain, Severity: plan.Critical, Subject: "patroni",
			Message: fmt.Sprintf("Patroni's leader is %s, but %s takes writes", w.Leader.V, w.primary.Name), Hint: "look at Patroni's logs on both; during a failover this lasts a moment"})
	}
	return found
}

// patroniSlots names each slot that Patroni would drop. Without a primary only
// slotkeeper's own are known.
func patroniSlots(w *ward) []Finding {
	var found []Finding
	for _, s := range slices.Concat(w.managed(), plan.OwnSlots()) {
		why := plan.PatroniDrops(w.Manager, s)
		if why == "" {
			continue
		}
		f := Finding{Code: plan.CondPatroniWillDrop, Severity: plan.Critical, Subject: s.Name,
			Message: fmt.Sprintf("Patroni drops slot %s when it starts, when the role changes or when a pause ends: %s", s.Name, why),
			Hint:    plan.DropHint(w.Manager, s)}
		if plan.Ignorable(w.Manager, s) {
			f.Patch = s.Name
			if s.Kind == cluster.Logical {
				f.Patch = PatchLogical
			}
		}
		found = append(found, f)
	}
	for i, matcher := range w.Manager.Slots.Ignore {
		if matcher.Unusable == "" && !matcher.Name.OK && !matcher.Database.OK && !matcher.Plugin.OK && matcher.Type.Or("physical") == "physical" {
			found = append(found, Finding{Code: CodeIgnoreSlotsWide, Severity: plan.Info, Subject: "patroni",
				Message: fmt.Sprintf("entry %d of ignore_slots matches every physical slot: Patroni never removes that of a member that has left, and it holds WAL for ever", i+1),
				Hint:    "name the slots that are meant"})
		}
	}
	return found
}

// PatchLogical is a Finding's Patch that stands for all logical slots.
const PatchLogical = "*"

// Patches gives what Patroni's ignore_slots must cover for the findings that it
// would mend: all logical slots, and physical ones by name.
func Patches(found []Finding) (logical bool, physical []string) {
	for _, f := range found {
		switch f.Patch {
		case "":
		case PatchLogical:
			logical = true
		default:
			physical = append(physical, f.Patch)
		}
	}
	return logical, slices.Compact(slices.Sorted(slices.Values(physical)))
}
