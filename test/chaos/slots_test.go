package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// churn is what comes and goes beside the steady slots.
type churn struct {
	database int // the number of the one that is there, 0 for none
	made     int
}

const elsewhere = "elsewhere" // the slot of the database that comes and goes

const vacuumCatalogs = "VACUUM pg_catalog.pg_class, pg_catalog.pg_attribute, pg_catalog.pg_type, pg_catalog.pg_depend, pg_catalog.pg_index"

// drop drops a slot by hand; somebody may have it in hand for a moment.
func (w *world) drop(n *lab.Node, slot string) bool {
	var err error
	for range 100 {
		ctx, cancel := w.within(10 * time.Second)
		err = n.Exec(ctx, "SELECT pg_drop_replication_slot($1) WHERE EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)", slot)
		cancel()
		if err == nil || code(err) == "42704" {
			return true
		}
		if code(err) != "55006" {
			break
		}
		w.sleep(20 * time.Millisecond)
	}
	w.say("  dropping slot %s on %s: %v", slot, n.Name(), err)
	return false
}

// dropHold takes a node's hold away, and on the primary, mostly, what it held.
func dropHold(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	n := one(w.nodes, c.a)
	if c.b%2 == 0 {
		n = w.primary.Load()
	}
	w.say("  on %s", n.Name())
	w.claims.withdraw()
	if !w.drop(n, "slotkeeper_hold") {
		w.notDone(c, fmt.Errorf("it could not be dropped"))
	}
	if n == w.primary.Load() && c.b%4 != 0 {
		w.must(n.Exec(ctx, vacuumCatalogs))
	}
	w.claims.withdraw()
	w.after(c)
}

func dropMirror(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	n := w.standby(c.a)
	slots, err := n.DB("").Strings(ctx, "SELECT slot_name::text FROM pg_replication_slots WHERE slot_type = 'logical' AND NOT temporary ORDER BY 1")
	if err != nil || len(slots) == 0 {
		w.notDone(c, err)
		return
	}
	slot := one(slots, c.b)
	w.say("  %s on %s", slot, n.Name())
	w.claims.withdraw()
	if !w.drop(n, slot) {
		w.notDone(c, fmt.Errorf("it could not be dropped"))
	}
	w.claims.withdraw()
	w.after(c)
}

// churnSlot drops one of three slots, or makes it where it is not.
func churnSlot(w *world, c choice) { w.churnSlot(c, false) }

// recreateSlot does both at once: another slot of the same name.
func recreateSlot(w *world, c choice) { w.churnSlot(c, true) }

func (w *world) churnSlot(c choice, both bool) {
	ctx, cancel := w.within(patience)
	defer cancel()
	p := w.primary.Load()
	slot := fmt.Sprintf("churn%d", c.a%3)
	var there bool
	w.must(p.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)", slot).Scan(&there))
	w.say("  %s, which is there: %t", slot, there)
	w.claims.withdraw()
	if there && !w.drop(p, slot) {
		w.notDone(c, fmt.Errorf("it could not be dropped"))
		return
	}
	if !there || both {
		w.must(w.createSlot(p, slot))
		w.must(w.noteMoved(ctx, p, slot))
	}
	w.claims.withdraw()
	w.after(c)
}

// churnDatabase makes a database with a slot of its own, writes into it, or drops it.
func churnDatabase(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	p := w.primary.Load()
	if w.churn.database != 0 && c.a%2 == 0 {
		w.must(p.DB(w.database()).Exec(ctx, "INSERT INTO t SELECT generate_series(1, 3)"))
		w.after(c)
		return
	}
	w.claims.withdraw()
	if w.churn.database != 0 {
		w.say("  %s goes", w.database())
		w.dropDatabase(ctx, p)
	} else {
		w.churn.made++
		w.churn.database = w.churn.made
		w.say("  %s comes", w.database())
		w.must(p.Exec(ctx, "CREATE DATABASE "+w.database()))
		w.must(p.DB(w.database()).Exec(ctx, "CREATE TABLE t (id int)"))
		w.must(p.DB(w.database()).Exec(ctx, "SELECT pg_create_logical_replication_slot('"+elsewhere+"', 'test_decoding')"))
		w.must(w.noteMoved(ctx, p, elsewhere))
		w.must(p.DB(w.database()).Exec(ctx, "INSERT INTO t SELECT generate_series(1, 5)"))
	}
	w.claims.withdraw()
	w.after(c)
}

func (w *world) database() string { return fmt.Sprintf("d%d", w.churn.database) }

func (w *world) dropDatabase(ctx context.Context, p *lab.Node) {
	w.must(p.Exec(ctx, "DROP DATABASE "+w.database()))
	w.churn.database = 0
}

// churnCatalogs fills the catalogs with dead rows and vacuums them: what nothing
// holds is gone then.
func churnCatalogs(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	p := w.primary.Load()
	w.must(p.Exec(ctx, `DO $$ BEGIN
		FOR i IN 1..150 LOOP
			EXECUTE 'CREATE TABLE chaos_churn (a int, b text)';
			COMMIT;
			EXECUTE 'DROP TABLE chaos_churn';
			COMMIT;
		END LOOP;
	END $$`))
	w.must(p.Exec(ctx, vacuumCatalogs))
	w.after(c)
}

func burnXids(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	w.must(w.primary.Load().Exec(ctx, "DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$"))
	w.after(c)
}

// checkpoints are restartpoints on standbys: they take snapshot files and WAL away.
func checkpoints(w *world, c choice) {
	ctx, cancel := w.within(patience)
	defer cancel()
	w.must(w.primary.Load().Exec(ctx, "CHECKPOINT"))
	for _, n := range w.standbys() {
		w.must(n.Exec(ctx, "CHECKPOINT"))
	}
	if c.b%2 == 0 {
		w.must(w.primary.Load().Exec(ctx, "SELECT pg_switch_wal(); CHECKPOINT"))
	}
	w.after(c)
}
