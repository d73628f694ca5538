package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// round is a scenario in the making.
type round struct {
	Scenario
	choices  choices
	report   Report
	lab      *Cluster
	primary  *Node
	standbys []*Node
	daemon   *Daemon
	load     *Load
	busy     *Consumer
	idle     *Deliveries
	stream   *Stream
	refused  bool        // the idle slot is not on the promoted node, and was never called SAFE there
	idleFrom cluster.LSN // confirmed_flush_lsn that the idle slot was born with
	last     Document
	promoted time.Time
	bounds   map[string]map[int]cluster.LSN
}

// Failover carries out a scenario: servers, writers, a consumer and the
// controller; a second, idle slot beside the busy one; the primary killed by
// SIGKILL, the better standby promoted, the consumer resumed from its slot, the
// other standbys led after it; and the account. An error means that it could
// not be carried out; what went wrong in slotkeeper stands in the report.
func Failover(ctx context.Context, scenario Scenario) (report Report, err error) {
	r := &round{Scenario: scenario.withDefaults(), choices: scenario.choices(), bounds: map[string]map[int]cluster.LSN{}}
	r.report.Seed = scenario.Seed
	r.lab, err = NewCluster(ctx, Options{Dir: r.Dir, BinDir: r.BinDir, Logger: r.Logger, Keep: r.Keep, Fsync: true})
	if err != nil {
		return r.report, err
	}
	r.report.Dir = r.lab.Dir()
	defer func() {
		if r.load != nil {
			r.load.cancel()
		}
		if r.stream != nil {
			r.stream.cancel()
		}
		err = errors.Join(err, r.lab.Close())
	}()
	for _, step := range []func(context.Context) error{
		r.startServers, r.startLoad, r.startController, r.addIdleSlot, r.failOver, r.resume, r.followAll, r.drain, r.account,
	} {
		if err := step(ctx); err != nil {
			return r.report, fmt.Errorf("seed %d: %w", r.Seed, err)
		}
	}
	return r.report, nil
}

func (r *round) startServers(ctx context.Context) error {
	r.Progress(fmt.Sprintf("starting a primary and %d standbys (hot_standby_feedback %v) in %s", r.Standbys, r.choices.feedback, r.lab.Dir()))
	var err error
	if r.primary, err = r.lab.AddPrimary(ctx, "node1"); err != nil {
		return err
	}
	if err := SetupRole(ctx, r.primary); err != nil {
		return err
	}
	if err := SetupLoad(ctx, r.primary); err != nil {
		return err
	}
	r.standbys = make([]*Node, r.Standbys)
	group, gctx := errgroup.WithContext(ctx)
	for i := range r.standbys {
		group.Go(func() error {
			var err error
			r.standbys[i], err = r.lab.AddStandby(gctx, fmt.Sprintf("node%d", i+2), r.primary, StandbyOptions{Feedback: r.choices.feedback})
			return err
		})
	}
	return group.Wait()
}

func (r *round) startLoad(ctx context.Context) error {
	if _, err := r.createSlot(ctx, BusySlot); err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("starting writers and the consumer of slot %q", BusySlot))
	r.busy = &Consumer{Slot: BusySlot, Deliveries: NewDeliveries(), ConfirmEvery: r.choices.confirmEvery}
	var err error
	if r.stream, err = r.busy.Start(ctx, r.primary); err != nil {
		return err
	}
	r.load = StartLoad(ctx, r.primary, r.choices.load)
	return r.under(ctx, r.choices.warm)
}

// createSlot gives the confirmed_flush_lsn that the slot was born with.
func (r *round) createSlot(ctx context.Context, name string) (cluster.LSN, error) {
	var text string
	if err := r.primary.QueryRow(ctx, "SELECT lsn::text FROM pg_create_logical_replication_slot($1, 'pgoutput')", name).Scan(&text); err != nil {
		return 0, fmt.Errorf("creating slot %q: %w", name, err)
	}
	return cluster.ParseLSN(text)
}

// under lets the load work for a while.
func (r *round) under(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.load.Failed():
		return r.load.Stop(ctx)
	case <-r.stream.Done():
		return fmt.Errorf("the consumer ended: %w", exitError(r.stream.Err()))
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *round) startController(ctx context.Context) error {
	r.Progress("starting the controller with its embedded etcd")
	began := time.Now()
	var err error
	r.daemon, err = r.lab.StartDaemon(DaemonOptions{Binary: r.Binary, Interval: r.Interval, Members: r.lab.Nodes()})
	if err != nil {
		return err
	}
	if err := r.waitSafe(ctx, []string{BusySlot}, r.standbys); err != nil {
		return err
	}
	r.report.SafeAfter = time.Since(began)
	r.Progress(fmt.Sprintf("slot %q is SAFE on every standby, %s after the controller's start", BusySlot, r.report.SafeAfter.Round(time.Millisecond)))
	return r.watch(ctx, 0)
}

// waitSafe waits for the controller's word, and shows each of its words meanwhile.
func (r *round) waitSafe(ctx context.Context, slots []string, standbys []*Node) error {
	var names []string
	for _, node := range standbys {
		names = append(names, node.name)
	}
	ctx, cancel := context.WithTimeout(ctx, defaultPatience/2)
	defer cancel()
	document, err := r.daemon.WaitSafe(ctx, slots, names, r.OnStatus)
	r.last = document
	return err
}

// watch asks the controller again and again while the load works.
func (r *round) watch(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		document, err := r.daemon.Status(ctx)
		if err != nil {
			return err
		}
		r.last = document
		r.OnStatus(document)
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if err := r.under(ctx, min(left, 100*time.Millisecond)); err != nil {
			return err
		}
	}
}

// addIdleSlot creates a slot while transactions are open and measures how long
// it takes until it would survive.
func (r *round) addIdleSlot(ctx context.Context) error {
	r.Progress(fmt.Sprintf("creating the idle slot %q beside it, while transactions are open", IdleSlot))
	var err error
	if r.idleFrom, err = r.createSlot(ctx, IdleSlot); err != nil {
		return err
	}
	began := time.Now()
	if err := r.waitSafe(ctx, []string{IdleSlot}, r.standbys); err != nil {
		if ctx.Err() != nil {
			return err
		}
		r.fail("waiting for the new slot", err) // and the failover of the other one still counts
	} else {
		r.report.ReadyAfter = time.Since(began)
		r.report.ReadyCycles = int((r.report.ReadyAfter + r.Interval - 1) / r.Interval)
		r.Progress(fmt.Sprintf("slot %q is SAFE on every standby after %s", IdleSlot, r.report.ReadyAfter.Round(time.Millisecond)))
	}
	if r.choices.cut {
		if err := r.cut(ctx); err != nil {
			return err
		}
	}
	return r.watch(ctx, r.choices.kill)
}

// cut takes the consumer's connection away; it comes back to where the slot stands.
func (r *round) cut(ctx context.Context) error {
	r.Progress("cutting the consumer's connection; it comes back")
	if err := r.stream.Kill(); err != nil {
		return err
	}
	var err error
	r.stream, err = r.busy.Start(ctx, r.primary)
	return err
}

// failOver kills the primary and promotes the standby that has most, of those
// that the controller last showed SAFE for every slot.
func (r *round) failOver(ctx context.Context) error {
	r.Progress(fmt.Sprintf("killing the primary %s", r.primary.name))
	killed := time.Now()
	if err := r.primary.Kill(ctx); err != nil {
		return err
	}
	r.report.Killed = r.primary.name
	if err := r.stream.Err(); !errors.Is(err, ErrServerGone) {
		r.fail("the consumer on the killed primary", exitError(err))
	}
	best, err := r.choose(ctx)
	if err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("promoting %s", best.name))
	if err := best.Promote(ctx); err != nil {
		return err
	}
	r.promoted = time.Now()
	r.report.Promotion = r.promoted.Sub(killed)
	r.report.Promoted = best.name
	r.standbys = slices.DeleteFunc(r.standbys, func(n *Node) bool { return n == best })
	r.primary = best
	return r.Sabotage(ctx, best)
}

// choose compares the standbys once none of them receives any more.
func (r *round) choose(ctx context.Context) (*Node, error) {
	var best *Node
	var most cluster.LSN
	var bestSafe bool
	for _, node := range r.standbys {
		err := node.DB("").WaitTrue(ctx, 5*time.Millisecond, fmt.Sprintf("the walreceiver of node %q to end", node.name),
			"SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')")
		if err != nil {
			return nil, err
		}
		received, err := node.ReceivedLSN(ctx)
		if err != nil {
			return nil, err
		}
		isSafe := r.last.notSafe([]string{BusySlot, IdleSlot}, []string{node.name}) == ""
		if best == nil || isSafe && !bestSafe || isSafe == bestSafe && received > most {
			best, most, bestSafe = node, received, isSafe
		}
	}
	if !bestSafe {
		r.report.Errors = append(r.report.Errors, "no standby was SAFE for every slot when the primary was killed: "+
			r.last.notSafe([]string{BusySlot, IdleSlot}, []string{best.name}))
	}
	return best, nil
}

func (r *round) fail(what string, err error) {
	if err != nil {
		r.report.Errors = append(r.report.Errors, what+": "+err.Error())
	}
}
