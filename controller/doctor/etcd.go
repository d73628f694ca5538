package doctor

import "github.com/slotkeeper/slotkeeper/controller/plan"

// checkEtcd: without etcd nobody leads, and mirrors stand still.
func checkEtcd(w *ward) []Finding {
	if w.Etcd.Err == "" {
		return nil
	}
	return []Finding{{Code: CodeEtcdUnreachable, Severity: plan.Critical, Subject: "etcd", Message: w.Etcd.Err, Hint: w.Etcd.Hint}}
}
