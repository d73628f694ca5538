package doctor

import (
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// checkLeader: a controller that has been there and is not leaves holds and
// mirrors behind that go on costing. One that was never there is only told of.
func checkLeader(w *ward) []Finding {
	if w.Etcd.Err != "" || w.Etcd.Leader != "" {
		return nil
	}
	f := Finding{Code: CodeControllerAbsent, Severity: plan.Info, Subject: "controller",
		Message: "no controller leads, and none has been here yet", Hint: "start slotkeeper run"}
	if w.Etcd.Stopped {
		f.Message = "no daemon runs, which has the etcd inside it, and none has been here yet"
	}
	if age, been := w.heartbeat(); been {
		f.Severity = plan.Warning
		f.Message = fmt.Sprintf("no controller leads; the last one was here %s ago, and mirrors stand since then", age.Round(time.Second))
		f.Hint = "start slotkeeper run: until then mirrors pin WAL on the standbys and the holds pin catalog rows; slotkeeper uninstall takes them away for good"
	}
	return []Finding{f}
}

// heartbeat is how long ago a controller of this scope raised a fence last.
func (w *ward) heartbeat() (youngest time.Duration, been bool) {
	for _, m := range w.Members {
		read, ok := m.read()
		if !ok || read.Node.Fence.V.Scope != w.Policy.Scope || !read.Node.Heartbeat.OK {
			continue
		}
		if age := read.Node.Clock.Sub(read.Node.Heartbeat.V); !been || age < youngest {
			youngest, been = max(age, 0), true
		}
	}
	return youngest, been
}
