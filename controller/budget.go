package controller

import "time"

// The ledger's etcd is often Patroni's, and keeps every version of every value
// until somebody compacts it. A busy cluster must not fill it, whatever flaps.
const (
	// BudgetPerDay is how many bytes a leader writes to the ledger in a day: a
	// sixteenth of etcd's default quota of 2 GB.
	BudgetPerDay = 128 << 20
	// budgetBurst is how much of it may be saved up for a moment in which everything
	// changes.
	budgetBurst = 8 << 20
	// partOverhead is what etcd adds to a value: key, revision, entry.
	partOverhead = 200
)

// budget counts bytes as a bucket that fills at the rate of BudgetPerDay. Its
// zero value is full.
type budget struct {
	used float64 // of the burst
	at   time.Time
}

func (b *budget) refill(now time.Time) {
	if !b.at.IsZero() {
		b.used = max(0, b.used-now.Sub(b.at).Seconds()*BudgetPerDay/(24*60*60))
	}
	b.at = now
}

// allows reports whether parts may be written now and leave reserve bytes. What
// is larger than a full bucket may go when it is full.
func (b *budget) allows(parts map[string][]byte, now time.Time, reserve float64) bool {
	b.refill(now)
	return b.used == 0 || b.used+cost(parts)+reserve <= budgetBurst
}

func (b *budget) spend(parts map[string][]byte, now time.Time) {
	b.refill(now)
	b.used += cost(parts)
}

// PerDay is how many bytes a day the ledger takes, where all that one writing
// of size bytes puts down moves all the time.
func PerDay(size int) int64 {
	const day = 24 * 60 * 60
	return min(BudgetPerDay, int64(size)*int64(day/positionsEvery.Seconds()))
}

func cost(parts map[string][]byte) float64 {
	bytes := 0
	for _, text := range parts {
		bytes += len(text) + partOverhead
	}
	return float64(bytes)
}
