package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// D11: an etcd with a quota of 32 MB keeps Patroni's leader key as well as the
// ledger of many slots that move all the time.
func TestD11LedgerBesidePatronisLeaderKey(t *testing.T) {
	t.Parallel()
	const slots = 12
	s := harness.New(t, harness.Options{Lasts: 8 * time.Minute, Settings: map[string]string{"max_replication_slots": "40"}})
	e := s.Etcd(lab.EtcdOptions{Quota: 32 << 20})
	key := keepLeaderKey(s, e)
	s.Exec(s.A, "CREATE TABLE t (id int)")
	var names []string
	for i := range slots {
		names = append(names, fmt.Sprintf("cdc%02d", i))
		s.Consumed(s.A, names[i])
	}
	s.RunWith(lab.DaemonOptions{Etcd: e.Section(nil)})
	s.Safe(names)

	began, before := time.Now(), ledgerBytes(s, e)
	for range 40 { // each moves every slot
		s.Exec(s.A, "INSERT INTO t VALUES (1)")
		s.Exec(s.A, "SELECT count(*) FROM pg_replication_slots s, LATERAL pg_logical_slot_get_changes(s.slot_name, NULL, NULL) WHERE s.slot_type = 'logical'")
		s.Cycles(1)
	}
	s.Safe(names)
	took, bytes := time.Since(began), ledgerBytes(s, e)-before
	perDay := int64(float64(bytes) * float64(24*time.Hour) / float64(took))
	t.Logf("%d slots moving: %d bytes of ledger in %s, %d MB a day; etcd holds %d revisions", slots, bytes, took.Round(time.Second), perDay>>20, key.renewed())
	// One writing of all positions may fall into a short time.
	if most := controller.BudgetPerDay/(24*60*60)*int64(took.Seconds()+1) + 64<<10; bytes > most {
		t.Errorf("the ledger took %d bytes in %s, %d at most were wanted", bytes, took, most)
	}

	// Somebody else fills it: said before half of the quota, and from there on the
	// ledger is not written, while Patroni's key goes on.
	fill(s, e, 14<<20)
	if c := s.Condition(controller.CodeEtcdSpace); c.Severity != plan.Warning {
		t.Errorf("before half of the quota it is %s", c.Severity)
	}
	fill(s, e, 20<<20)
	s.Wait("the condition to be critical", func() (bool, string) {
		c := s.Condition(controller.CodeEtcdSpace)
		return c.Severity == plan.Critical, string(c.Severity)
	})
	stopped := ledgerBytes(s, e)
	s.Logical(s.A, "unwritten")
	s.Verdict("unwritten", s.B, plan.Safe, "")
	s.Cycles(3)
	if more := ledgerBytes(s, e) - stopped; more != 0 {
		t.Errorf("%d bytes of ledger were written into an etcd that is half full", more)
	}
	at := key.renewed()
	s.Wait("Patroni's leader key to be written still", func() (bool, string) { return key.renewed() > at, "it is not" })
	key.end(s)

	doctor := s.Slotkeeper("doctor", "-o", "json")
	var doc struct {
		Ledger struct {
			Large int64 `json:"large_bytes_per_day"`
			Quota int64 `json:"etcd_quota_bytes"`
		}
	}
	s.OK(json.Unmarshal([]byte(doctor.Stdout), &doc))
	if doc.Ledger.Quota != 32<<20 || doc.Ledger.Large <= 0 || doc.Ledger.Large > controller.BudgetPerDay || !strings.Contains(doctor.Stdout, controller.CodeEtcdSpace) {
		t.Errorf("doctor says %s", doctor.Stdout)
	}
}

// leaderKey is Patroni's, written again and again while the test lasts.
type patroniKey struct {
	stop context.CancelFunc
	done chan error
	at   chan int64 // the revision of the last write
}

func keepLeaderKey(s *harness.Scene, e *lab.Etcd) *patroniKey {
	s.T.Helper()
	ctx, cancel := context.WithCancel(s.Ctx)
	k := &patroniKey{stop: cancel, done: make(chan error, 1), at: make(chan int64)}
	s.T.Cleanup(cancel)
	client, err := e.Client(ctx)
	s.OK(err)
	go func() {
		defer func() { _ = client.Close() }() // its context has ended
		at := int64(0)
		for ctx.Err() == nil {
			resp, err := client.Put(ctx, "/service/demo/leader", "node1")
			if err == nil {
				at = resp.Header.Revision
			} else if ctx.Err() == nil {
				k.done <- fmt.Errorf("writing Patroni's leader key: %w", err)
				return
			}
			select {
			case k.at <- at:
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		k.done <- nil
	}()
	return k
}

func (k *patroniKey) renewed() int64 {
	select {
	case at := <-k.at:
		return at
	case err := <-k.done:
		k.done <- err
		return 0
	}
}

func (k *patroniKey) end(s *harness.Scene) {
	s.T.Helper()
	k.stop()
	s.OK(<-k.done)
}

// ledgerBytes counts the bytes of every version of every part of the ledger.
func ledgerBytes(s *harness.Scene, e *lab.Etcd) int64 {
	s.T.Helper()
	client, err := e.Client(s.Ctx)
	s.OK(err)
	defer func() { _ = client.Close() }() // it is only read
	ctx, cancel := context.WithTimeout(s.Ctx, harness.Patience)
	defer cancel()
	now, err := client.Get(ctx, "/slotkeeper/lab/ledger/", clientv3.WithPrefix())
	s.OK(err)
	bytes, seen := int64(0), int64(0)
	for watch := client.Watch(ctx, "/slotkeeper/lab/ledger/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithProgressNotify()); seen < lastOf(now); {
		resp, open := <-watch
		if !open || resp.Err() != nil {
			s.T.Fatalf("reading the ledger's history: %v", resp.Err())
		}
		for _, ev := range resp.Events {
			seen = max(seen, ev.Kv.ModRevision)
			if ev.Kv.ModRevision <= lastOf(now) {
				bytes += int64(len(ev.Kv.Key) + len(ev.Kv.Value))
			}
		}
	}
	return bytes
}

func lastOf(resp *clientv3.GetResponse) int64 {
	last := int64(0)
	for _, kv := range resp.Kvs {
		last = max(last, kv.ModRevision)
	}
	return last
}

// fill writes keys until etcd has used that many bytes.
func fill(s *harness.Scene, e *lab.Etcd, upto int64) {
	s.T.Helper()
	client, err := e.Client(s.Ctx)
	s.OK(err)
	defer func() { _ = client.Close() }() // what it was for is done
	for i := 0; ; i++ {
		used := int64(0)
		for _, member := range e.Endpoints() { // one may lag behind what was written
			at, err := client.Status(s.Ctx, member)
			s.OK(err)
			used = max(used, at.DbSizeInUse)
		}
		if used >= upto {
			return
		}
		_, err = client.Put(s.Ctx, fmt.Sprintf("/other/%d", i), strings.Repeat("x", 256<<10))
		s.OK(err)
	}
}
