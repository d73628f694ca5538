package status

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// MovingBytes is how many bytes of the ledger one writing of all that moves
// takes, where all of so many slots move on so many standbys.
func MovingBytes(slots, standbys int) (int, error) {
	r := rand.New(rand.NewPCG(1, 2)) // numbers as different as real ones are
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moment := func() time.Time { return at.Add(time.Duration(r.Int64N(int64(time.Hour)))) }
	position := func() cluster.Position {
		return cluster.Position{Restart: cluster.LSN(r.Uint64() >> 20), Confirmed: cluster.LSN(r.Uint64() >> 20), CatalogXmin: cluster.XID(r.Uint32())}
	}
	mem := plan.Memory{Slots: map[string]plan.SlotNote{}, Pairs: map[plan.Pair]plan.PairNote{}, Standbys: map[string]plan.NodeNote{}}
	for n := range standbys {
		mem.Standbys[fmt.Sprintf("node%d", n)] = plan.NodeNote{ReadAt: moment(), Replay: cluster.LSN(r.Uint64() >> 20), OldestXmin: cluster.XID(r.Uint32())}
	}
	for n := range slots {
		name, p := fmt.Sprintf("some_slot_of_length_%d", n), position()
		mem.Slots[name] = plan.SlotNote{
			Incarnation: cluster.Incarnation{Inode: r.Uint64() >> 40, Birth: cluster.Some(moment())},
			HighestF:    p.Confirmed, HighestSent: p.Confirmed, Last: cluster.Some(p), LastAt: moment(),
			Database: "application", Plugin: "pgoutput", RestartSince: moment(),
		}
		for s := range standbys {
			mem.Pairs[plan.Pair{Slot: name, Standby: fmt.Sprintf("node%d", s)}] = plan.PairNote{
				Way: "snapshot", ProvenAt: moment(), Verdict: plan.Verdict{Mirror: cluster.Some(position())}}
		}
	}
	parts, err := PositionParts(mem, at, nil)
	if err != nil {
		return 0, err
	}
	if parts[PartStandbys], err = StandbysPart(mem, at); err != nil {
		return 0, err
	}
	total := 0
	for _, text := range parts {
		packed, err := Packed(text)
		if err != nil {
			return 0, err
		}
		total += len(packed)
	}
	return total, nil
}
