//go:build patroni

package patroni

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
)

// In quorum mode Patroni promotes whom the synchronous members let through, also one
// that is none itself; with synchronous_mode alone, as up to 3.x, one of them and
// nobody else. The gate weighs its rivals by the same rule, and a switchover names a
// synchronous candidate only, as Patroni demands in both.
func TestSynchronousModeByQuorum(t *testing.T) {
	t.Parallel()
	s := gated(t)
	quorum := s.p.Version() != lab.DefaultPatroni && s.p.Version() != ""
	var mode any = true
	if quorum {
		mode = "quorum"
	}
	others := s.p.Others(s.leader())
	sync, outside := others[0], others[1]
	s.tag(outside, map[string]any{"nosync": true}, `"nosync":true`)
	s.in(func(ctx context.Context) error { return s.p.PatchConfig(ctx, map[string]any{"synchronous_mode": mode}) })
	s.synchronous(quorum, 0, sync)
	s.safe("cdc")
	doc := s.switchover(3, switchover.OutcomeRefused, "--yes", "--to", outside.Name())
	if !strings.Contains(doc.Message, "nosync") {
		t.Error(doc.Message)
	}
	if doc := s.switchover(0, switchover.OutcomeReady, "--dry-run"); doc.To != sync.Name() {
		t.Errorf("%+v", doc)
	}

	// The synchronous one would lose the slot, the other one not.
	s.obstruct(sync)
	s.write(1, 5, others...)
	r := s.Slotkeeper("gate", "--dry-run", "--node", sync.Name())
	if quorum && (r.Code != 3 || !strings.Contains(r.Stderr, outside.Name()+" loses nothing and can be promoted")) {
		t.Errorf("%+v", r)
	}
	if !quorum && (r.Code != 0 || !strings.Contains(r.Stderr, outside.Name()+": it is not synchronous")) {
		t.Errorf("%+v", r)
	}
	f := s.failover()
	want := sync
	if quorum && f.received[outside.Name()] >= f.received[sync.Name()] {
		want = outside
	}
	if f.leader != want || f.refusals() > 1 {
		t.Fatalf("%s leads, want %s: %+v", f.leader.Name(), want.Name(), f)
	}
	if want == outside {
		if got := strings.Join(s.Peek(outside.Node(), "cdc"), "\n"); strings.Count(got, "INSERT") != 5 {
			t.Errorf("what was not confirmed does not come: %s", got)
		}
	}
	s.clear(sync)
	if want == sync {
		s.Logical(sync.Node(), "cdc")
	}
	s.back(f)
	s.safe("cdc")

	// All vote again, and it is handed over, and a leader that dies is followed by a
	// synchronous one.
	s.tag(outside, nil, "")
	from := s.leader()
	if quorum {
		s.synchronous(quorum, 1, s.p.Others(from)...)
	}
	s.Exec(from.Node(), "TRUNCATE t") // what came before is nothing that a consumer has to account for
	life := s.live()
	s.goesOn(life)
	doc = s.switchover(0, switchover.OutcomeDone, "--yes")
	s.done(doc, from.Name(), doc.To)
	s.goesOn(life)
	if quorum {
		s.synchronous(quorum, 1, s.p.Others(s.leader())...)
	}
	s.until("a standby to be synchronous", func() (bool, string) {
		state := s.syncKey()
		return state.Leader == s.leader().Name() && state.Standby != "", state.Standby
	})
	s.safe("cdc")
	voters := s.syncKey().Standby
	f = s.failover()
	if !strings.Contains(","+voters+",", ","+f.leader.Name()+",") || f.refusals() != 0 {
		t.Errorf("of %s: %+v", voters, f)
	}
	s.goesOn(life)
	s.back(f)
	s.safe("cdc")
	s.account(life)
}

// tag has a member be of some tags alone beside the sample's, and waits until its key
// says so.
func (s *scene) tag(m *lab.PatroniMember, tags map[string]any, says string) {
	s.T.Helper()
	var over map[string]any
	if tags != nil {
		over = map[string]any{"tags": tags}
	}
	s.OK(m.Configure(over))
	s.OK(m.Reload())
	if says != "" {
		s.key("members/"+m.Name(), says)
		return
	}
	s.until("the tags of "+m.Name()+" to be gone", func() (bool, string) {
		now, err := s.p.Key(s.Ctx, "members/"+m.Name())
		return err == nil && now != "" && !strings.Contains(now, `"tags"`), now
	})
}

// syncState is Patroni's key sync.
type syncState struct {
	Leader  string `json:"leader"`
	Standby string `json:"sync_standby"`
	Quorum  *int   `json:"quorum"`
}

func (s *scene) syncKey() syncState {
	s.T.Helper()
	text, err := s.p.Key(s.Ctx, "sync")
	s.OK(err)
	var state syncState
	if text != "" {
		s.OK(json.Unmarshal([]byte(text), &state))
	}
	return state
}

// synchronous waits until the key sync names these members and no others, in quorum
// mode with a quorum of that many.
func (s *scene) synchronous(quorum bool, needs int, members ...*lab.PatroniMember) {
	s.T.Helper()
	s.until("the synchronous members to be so", func() (bool, string) {
		state := s.syncKey()
		text, _ := json.Marshal(state) // it is a struct of texts
		if len(strings.Split(state.Standby, ",")) != len(members) || quorum && (state.Quorum == nil || *state.Quorum != needs) {
			return false, string(text)
		}
		for _, m := range members {
			if !strings.Contains(","+state.Standby+",", ","+m.Name()+",") {
				return false, string(text)
			}
		}
		return true, ""
	})
}
