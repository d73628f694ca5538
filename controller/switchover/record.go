package switchover

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Record is what was asked, written to etcd before it is asked, so that whoever
// comes after a killed run knows of it.
type Record struct {
	Version   int              `json:"version"`
	ID        string           `json:"id"` // of the run that asks
	Leader    string           `json:"leader"`
	Candidate string           `json:"candidate"`
	Why       string           `json:"why"` // why this candidate
	At        time.Time        `json:"at"`
	SystemID  cluster.SystemID `json:"system_identifier"`
	Timeline  cluster.Timeline `json:"timeline"`
	// Asked: the request is being made, or was. Before that there is none, but nobody
	// can say whether there will be.
	Asked bool `json:"asked"`
	// Modified is the revision of Patroni's key failover before the request: as long
	// as that stands, Patroni has not taken it up.
	Modified int64               `json:"modified"`
	Gate     cluster.Opt[Answer] `json:"gate"` // the newest answer before the request
	Answer   cluster.Opt[Reply]  `json:"answer"`
	Slots    []Before            `json:"slots"`
	More     int                 `json:"more,omitempty"` // slots that found no room
	Senders  []Sender            `json:"walsenders"`
	// Last is when the old primary was last seen to take writes, once it has stopped.
	Last cluster.Opt[time.Time] `json:"last_writable"`
}

// Reply is Patroni's answer by HTTP.
type Reply struct {
	Status int    `json:"status"`
	Text   string `json:"text"`
}

// Before is a slot as it was last seen before the promotion.
type Before struct {
	Name      string                        `json:"name"`
	Database  string                        `json:"database"`
	Plugin    string                        `json:"plugin"`
	Confirmed cluster.Opt[cluster.LSN]      `json:"confirmed_flush_lsn"`
	Active    bool                          `json:"active"` // its consumer was seen at work
	Failover  bool                          `json:"failover"`
	Mirror    cluster.Opt[cluster.Position] `json:"mirror"` // on the candidate
}

const recordVersion = 1

// maxRecord bounds the key: etcd is Patroni's as well.
const maxRecord = 64 << 10

// Encode gives the record's bytes, at most maxRecord of them: slots that find no
// room are only counted.
func (r Record) Encode() ([]byte, error) {
	r.Version = recordVersion
	for {
		text, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encoding the switchover's record: %w", err)
		}
		if len(text) <= maxRecord || len(r.Slots) == 0 {
			return text, nil
		}
		keep := len(r.Slots) * 9 / 10
		r.More += len(r.Slots) - keep
		r.Slots = r.Slots[:keep]
	}
}

// ParseRecord reads a record. One of another version is an error: nobody can say
// what it means.
func ParseRecord(text []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("the record of a switchover in etcd cannot be read: %w", err)
	}
	if r.Version != recordVersion || r.ID == "" || r.Leader == "" || r.Candidate == "" || r.Timeline == 0 {
		return r, fmt.Errorf("the record of a switchover in etcd is of version %d, or not whole; this program knows version %d", r.Version, recordVersion)
	}
	return r, nil
}

// since gives the gate's answers that came after the record.
func (r Record) since(all []Answer) []Answer {
	if !r.Gate.OK {
		return all
	}
	at := slices.IndexFunc(all, func(a Answer) bool { return a.Node == r.Gate.V.Node && a.At.Equal(r.Gate.V.At) })
	return all[at+1:]
}

// quiet is how long nothing may be seen of a request before it is known that it
// will not be taken up any more: Patroni reads etcd, asks the candidate and writes
// etcd, each for as long as it goes on trying.
func quiet(k Keys) time.Duration { return 2*max(k.Retry, 5*time.Second) + 5*time.Second }
