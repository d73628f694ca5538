package cases

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/test/harness"
)

// Where a snapshot file's fields are (snapbuild.c, SnapBuildOnDisk).
const (
	snapChecksum = 4
	snapVersion  = 8
	snapLength   = 12
	snapState    = 16
)

// resum gives changed bytes the checksum that fits them.
func resum(bytes []byte) []byte {
	sum := crc32.Checksum(bytes[snapVersion:], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(bytes[snapChecksum:], sum)
	return bytes
}

// Bad input: a snapshot file that comes damaged, cut short, from another major
// or from another position. Each is refused with what is wrong, and neither a slot
// nor a file comes of it; the right bytes make the mirror.
func TestBadInputSnapshotBytes(t *testing.T) {
	t.Parallel()
	s := harness.New(t, harness.Options{Settings: harness.Still()})
	s.Exec(s.A, "CREATE TABLE t (id int)")
	s.Still(s.A)
	s.Logical(s.A, "beside", "cdc")
	first, second := s.Session(s.A), s.Session(s.A)
	record := func() {
		s.Exec(s.A, "CHECKPOINT")
		s.Get(s.A, "cdc")
	}
	first.Exec("BEGIN; INSERT INTO t VALUES (1)")
	record()
	second.Exec("BEGIN; INSERT INTO t VALUES (2)")
	record()
	first.Exec("COMMIT")
	record()
	record() // restart_lsn is where first was open: only the file proves it
	s.Run("slots: {include: [{name: beside}]}")
	s.Safe([]string{"beside"}) // gives b a fence and a hold
	s.StopDaemon()
	at := s.Slot(s.A, "cdc")
	good := s.TakeSnapshot(s.A, at.Restart)
	later, other := s.NewestSnapshot(s.A)
	if later <= at.Restart {
		t.Fatalf("the scene is not set: there is no snapshot after %s", at.Restart)
	}

	edited := func(edit func([]byte) []byte) []byte { return edit(append([]byte(nil), good...)) }
	for name, bad := range map[string]struct {
		bytes []byte
		says  string
	}{
		"empty":          {nil, "bytes at least"},
		"half":           {good[:len(good)/2], "bytes at least"},
		"one byte short": {good[:len(good)-1], "bytes"},
		"one byte more":  {edited(func(b []byte) []byte { return append(b, 0) }), "bytes"},
		"of another major": {edited(func(b []byte) []byte {
			b[snapVersion]++
			return resum(b)
		}), "this server reads version"},
		"of another kind of file": {edited(func(b []byte) []byte { b[0]++; return b }), "magic number"},
		"of a builder not ready": {edited(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[snapState:], 1)
			return resum(b)
		}), "not consistent"},
		"of a false length": {edited(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[snapLength:], uint32(len(b)+4))
			return resum(b)
		}), "bytes"},
		"of a later position": {other, "at a later position"},
	} {
		code, detail := s.Apply(s.B, "cdc", bad.bytes)
		if code != "bad_snapshot" || !strings.Contains(detail, bad.says) || !strings.Contains(detail, at.Restart.String()) {
			t.Errorf("%s: %s, %q, want %q", name, code, detail, bad.says)
		}
	}
	if codes := s.ApplyFlipped(s.B, "cdc", good); codes != fmt.Sprintf("bad_snapshot %d", 8*len(good)) {
		t.Errorf("each bit flipped gives %q", codes)
	}
	if s.Has(s.B, "cdc") || s.HasSnapshot(s.B, at.Restart) {
		t.Error("a slot or a file came of bad bytes")
	}

	if code, detail := s.Apply(s.B, "cdc", good); code != "made" {
		t.Errorf("the right bytes: %s, %q", code, detail)
	}
}
