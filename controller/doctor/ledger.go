package doctor

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// manyRevisions: an etcd that has seen so many and forgot none has nobody who
// compacts it. Patroni alone makes that many in some weeks.
const manyRevisions = 1_000_000

// checkLedger: the ledger lies in an etcd that others need more.
func checkLedger(w *ward) []Finding {
	e := w.Etcd
	var found []Finding
	if e.Quota > 0 && e.Used >= e.Quota/5*2 {
		found = append(found, Finding{Code: CodeEtcdSpace, Severity: plan.Warning, Subject: "etcd",
			Message: fmt.Sprintf("etcd has used %d of its quota of %d MB: at half of it slotkeeper writes its ledger no longer", e.Used>>20, e.Quota>>20),
			Hint:    "let etcd compact (auto-compaction-retention), defragment it, or raise quota-backend-bytes"})
	}
	if e.Revisions >= manyRevisions && !e.Compacted {
		found = append(found, Finding{Code: CodeEtcdCompaction, Severity: plan.Warning, Subject: "etcd",
			Message: fmt.Sprintf("etcd keeps all of its %d revisions: it was never compacted", e.Revisions),
			Hint:    "set auto-compaction-retention of etcd, such as 1h: it keeps every version of every value until then"})
	}
	return found
}
