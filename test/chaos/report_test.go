package chaos

import (
	"fmt"
	"strings"
	"time"
)

// report is what a run comes to.
type report struct {
	steps      map[string]int
	faulty     time.Duration // from the first to the last fault of each round, proofs on copies included
	rounds     int
	promotions int
	rewound    int
	rebuilt    int
	reads      int           // of the observer
	copies     int           // standbys copied and promoted
	unclaimed  int           // times that there was nothing to be proven
	decoded    int           // slots
	owed       int           // rows and messages that these had to give
	missing    int           // of them, the ones that did not come
	most       int           // that one of them had to give
	proofs     time.Duration // of all copies
	proof      time.Duration // the longest
	unproven   int           // slots on copies that were not claimed
	renewed    int           // slots whose loss was told, made anew
	fenced     int           // verdicts of controllers that were refused by the fence
	still      int           // times that nobody led and no mirror may move

	committed, delivered, duplicated, lost int // of the consumers
	acknowledged, unreplicated             int
	streams                                int
	slowest                                time.Duration // from healed to all SAFE
	notDone                                map[string]int
}

func newReport() *report { return &report{steps: map[string]int{}, notDone: map[string]int{}} }

// proven counts a slot of a copy that was decoded.
func (r *report) proven(owed, missing int) {
	r.decoded++
	r.owed += owed
	r.most = max(r.most, owed)
	r.missing += missing
}

func (r *report) print(w *world) {
	r.reads = w.observer.reads
	steps := 0
	var lines []string
	for _, f := range faults {
		if n := r.steps[f.name]; n > 0 {
			steps += n
			line := fmt.Sprintf("%s %d", f.name, n)
			if not := r.notDone[f.name]; not > 0 {
				line += fmt.Sprintf(" (%d not possible)", not)
			}
			lines = append(lines, line)
		}
	}
	w.t.Logf(`summary
seed                 %d, PostgreSQL %d, %s of faults and proofs in %s
faults               %d in %d rounds: %s
promotions           %d; old primaries rewound %d, rebuilt %d
leaders              %d epochs, %d documents of theirs seen; %d verdicts "fenced"
copies               %d standbys copied, promoted and decoded, which took %s, %s at most; %d times nothing was claimed
slots proven         %d that were called SAFE, which owed %d rows and messages (%d at most): %d did not come; %d slots were not claimed
positions read       %d times, of all nodes
nobody led           %d times, and no mirror moved
consumers            %d streams; rows committed %d, delivered %d, duplicated %d, lost %d; %d slots refused and made anew
asynchronous loss    %d of %d acknowledged rows, with their primaries
SAFE again           %s at most after everything was mended
violations           %d`,
		w.seed, w.lab.Major(), r.faulty.Round(time.Second), time.Since(w.begun).Round(time.Second), steps, r.rounds, strings.Join(lines, ", "),
		r.promotions, r.rewound, r.rebuilt, len(w.claims.leads), w.claims.seen, r.fenced,
		r.copies, r.proofs.Round(time.Second), r.proof.Round(100*time.Millisecond), r.unclaimed, r.decoded, r.owed, r.most, r.missing, r.unproven, r.reads, r.still,
		r.streams, r.committed, r.delivered, r.duplicated, r.lost, r.renewed,
		r.unreplicated, r.acknowledged, r.slowest.Round(10*time.Millisecond), len(w.violations))
	for _, v := range w.violations {
		w.t.Logf("violation: %s", v)
	}
}
