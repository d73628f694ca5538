package fuzz

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// forged changes real bytes of a snapshot and gives them the checksum that fits:
// what only somebody who means it does. The builder begins behind four words.
func (v *values) forged(whole []byte) []byte {
	bytes := append([]byte(nil), whole...)
	for range v.rand.IntN(3) + 1 {
		at := 16 + v.rand.IntN(len(bytes)-16)
		switch v.rand.IntN(3) {
		case 0:
			bytes[at] ^= byte(1 << v.rand.IntN(8))
		case 1:
			bytes[at] = byte(v.rand.UintN(256))
		default:
			at &^= 3
			binary.LittleEndian.PutUint32(bytes[at:], pick[uint32](v.rand, 0, 1, 2, 3, 1<<31, 1<<31-1, ^uint32(0)))
		}
	}
	sum := crc32.Checksum(bytes[8:], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(bytes[4:], sum)
	return bytes
}

// Snapshot files that are forged, checksum and all: what the extension takes for
// valid, a decoder gives rows from or an error, and no server ends by it.
func TestForgedSnapshots(t *testing.T) {
	t.Parallel()
	n := rounds(t, 50)
	g := newStage(t, 4*time.Minute+time.Duration(n)*5*time.Second, nil)
	v := &values{rand: source(seed(t), 4)}
	open := []*harness.Session{g.Session(g.primary), g.Session(g.primary)}
	before := g.witness(g.primary)
	ends := map[string]int{}
	for i := range n {
		g.overlap(v.rand, open, i)
		slot := pick(v.rand, g.slots...)
		at := g.Slot(g.primary, slot)
		if at.Snapshot != "valid" {
			ends["no file"]++
			continue
		}
		whole := g.TakeSnapshot(g.primary, at.Restart)
		g.PutSnapshot(g.primary, at.Restart, v.forged(whole))
		if g.Slot(g.primary, slot).Snapshot != "valid" {
			ends["bad"]++
		} else if err := g.primary.Exec(g.Ctx, fmt.Sprintf("SELECT count(*) FROM pg_logical_slot_peek_changes('%s', NULL, NULL)", slot)); err != nil {
			ends["valid, then an error"]++
		} else {
			ends["valid, then rows"]++
		}
		g.PutSnapshot(g.primary, at.Restart, whole)
	}
	t.Logf("%d forged files: %s", n, counts(ends))
	g.unharmed(before, nil)
	if ends["bad"] == 0 || ends["valid, then rows"]+ends["valid, then an error"] == 0 {
		t.Error("the scene is not set: no forgery was refused, or none was taken")
	}
}
