package patroni

// Tags are a member's tags, as Patroni takes them.
type Tags struct {
	NoFailover bool // it is never promoted
	// FailoverPriority: of two that have received the same, Patroni prefers the
	// higher; 0 or less is NoFailover. 1 where nothing is said.
	FailoverPriority int64
	NoSync           bool   // it is never a synchronous standby
	NoStream         bool   // it takes WAL from the archive only, and has no physical slot
	ReplicateFrom    string // the member that it prefers to stream from, "" for the leader
	All              map[string]string
}

// parseTags: up to 3.1 Patroni knows no failover_priority, and so it says nothing.
func parseTags(o object, priorities bool) Tags {
	t := Tags{FailoverPriority: 1, ReplicateFrom: text(o["replicatefrom"]), NoStream: o.on("nostream")}
	for name, value := range o {
		if t.All == nil {
			t.All = map[string]string{}
		}
		t.All[name] = shown(value)
	}
	t.NoSync = banned(o, "nosync", "sync_priority")
	if !priorities {
		t.NoFailover = truth(o["nofailover"])
		return t
	}
	t.NoFailover = banned(o, "nofailover", "failover_priority")
	if n, ok := integer(o["failover_priority"]); ok {
		t.FailoverPriority = n
	}
	if truth(o["nofailover"]) {
		t.FailoverPriority = 0
	}
	return t
}

// banned: the switch goes before the priority, and any text in it is true.
func banned(o object, flag, priority string) bool {
	if v := o[flag]; v != nil {
		return truth(v)
	}
	n, ok := integer(o[priority])
	return ok && n <= 0
}

// shown gives the tags for a topology, where nofailover is "true" or not there.
func (t Tags) shown() map[string]string {
	if len(t.All) == 0 {
		return nil
	}
	all := map[string]string{}
	for name, value := range t.All {
		all[name] = value
	}
	delete(all, "nofailover")
	if t.NoFailover {
		all["nofailover"] = "true"
	}
	return all
}
