package postgres

import (
	"encoding/json"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// What a ledger holds of a database's name must be what the next read gives.
func TestDatabaseNameComesBackFromJSON(t *testing.T) {
	inode := "7"
	row := slotRow{slot: cluster.Slot{Name: "cdc", Database: "caf\xe9"}, kind: "logical", inode: &inode}
	slot, err := row.convert()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(slot.Database)
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(text, &back); err != nil || back != slot.Database {
		t.Errorf("%q comes back as %q (%v)", slot.Database, back, err)
	}
}
