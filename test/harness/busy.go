package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// Busy writes into table t (id int) and has consumers confirm what was written,
// all the time: the slots (of the plugin test_decoding) never stand still. The
// function that it gives ends that, and may be called once.
func (s *Scene) Busy(n *lab.Node, slots ...string) (stop func()) {
	s.T.Helper()
	ctx, cancel := context.WithCancel(s.Ctx)
	conn, err := n.Connect(ctx, "", "")
	s.OK(err)
	sql := "INSERT INTO t VALUES (0)"
	for _, slot := range slots {
		sql += fmt.Sprintf("; SELECT count(*) FROM pg_logical_slot_get_changes('%s', NULL, NULL)", slot)
	}
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	s.T.Cleanup(func() { cancel(); _ = conn.Close(context.Background()) }) // its server may be dead
	return func() {
		s.T.Helper()
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			s.T.Fatalf("writing and consuming: %v", err)
		}
	}
}

// Delay has a standby replay commits so long after they were made; 0 for at once.
func (s *Scene) Delay(n *lab.Node, by time.Duration) {
	s.T.Helper()
	s.OK(n.Set(s.Ctx, map[string]string{"recovery_min_apply_delay": fmt.Sprintf("%dms", by.Milliseconds())}))
}

// NotBeyondReplay wants a mirror to be no further than its standby has replayed.
func (s *Scene) NotBeyondReplay(on *lab.Node, slot string) cluster.LSN {
	s.T.Helper()
	at := s.Slot(on, slot).Confirmed // read first: replay only grows
	replayed, err := on.ReplayedLSN(s.Ctx)
	s.OK(err)
	if at > replayed {
		s.T.Fatalf("the mirror of %s on %s is at %s, which it has not replayed: it is at %s", slot, on.Name(), at, replayed)
	}
	return at
}

// LogLine is one line of the controller's log.
type LogLine map[string]any

// Log gives the controller's log.
func (s *Scene) Log() []LogLine {
	s.T.Helper()
	var lines []LogLine
	for _, text := range strings.Split(s.Daemon.LogTail(1<<20), "\n") {
		var line LogLine
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			s.T.Fatalf("the controller's log has a line that is not JSON: %q", text)
		}
		lines = append(lines, line)
	}
	return lines
}

// NoComplaints wants the controller's log to hold no warning and no error but
// of these conditions, and no line more often than three times: no loop.
func (s *Scene) NoComplaints(conditions ...string) {
	s.T.Helper()
	times := map[string]int{}
	for _, line := range s.Log() {
		level, message := line["@level"], fmt.Sprint(line["@message"])
		code := fmt.Sprint(line["code"])
		if (level == "warn" || level == "error") && (message != "condition" || !slices.Contains(conditions, code)) {
			s.T.Errorf("the controller complains: %v", line)
		}
		key := fmt.Sprint(message, line["code"], line["slot"], line["node"], line["subject"], line["verdict"], line["reason"])
		if times[key]++; times[key] == 4 {
			s.T.Errorf("the controller says again and again: %v", line)
		}
	}
}

// Now is the verdict of the last document on a pair; the test ends where there is none.
func (s *Scene) Now(slot string, on *lab.Node) status.Standby {
	s.T.Helper()
	var pair status.Standby
	s.Wait("a verdict on "+slot+" on "+on.Name(), func() (bool, string) {
		doc, ok := s.Status()
		if !ok {
			return false, "the controller does not answer"
		}
		pair, ok = Pair(doc, slot, on.Name())
		return ok, "the controller does not show it"
	})
	return pair
}

// Received waits until a standby has received all that the primary has flushed now.
func (s *Scene) Received(on *lab.Node) {
	s.T.Helper()
	target := s.Current(s.A)
	s.Wait(on.Name()+" to receive "+target.String(), func() (bool, string) {
		at, err := on.ReceivedLSN(s.Ctx)
		s.OK(err)
		return at >= target, "it has received " + at.String()
	})
}

// Judged reports whether the controller's log has such a verdict on a pair.
func (s *Scene) Judged(slot string, on *lab.Node, state plan.State, reason plan.Reason) bool {
	s.T.Helper()
	return slices.ContainsFunc(s.Log(), func(l LogLine) bool {
		return l["@message"] == "verdict" && l["slot"] == slot && l["node"] == on.Name() && l["verdict"] == string(state) && l["reason"] == string(reason)
	})
}

// InTheMaking has a slot of the plugin test_decoding created beside an open
// transaction, for whose end its creation waits as long as the test runs.
func (s *Scene) InTheMaking(n *lab.Node, slot string) {
	s.T.Helper()
	s.Session(n).BeginIdle()
	creator := s.Session(n)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Ends with the server.
		_, _ = creator.conn.Exec(s.Ctx, "SELECT pg_create_logical_replication_slot($1, 'test_decoding')", slot)
	}()
	s.T.Cleanup(func() { <-ended })
	s.Wait("slot "+slot+" to be in the making", func() (bool, string) { return s.Has(n, slot), "it is not there" })
}
