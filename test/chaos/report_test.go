package chaos

import (
	"fmt"
	"strings"
	"time"
)

// report is what a run comes to.
type report struct {
	steps      map[string]int
	rounds     int
	promotions int
	rewound    int
	rebuilt    int
	reads      int // of the observer
	copies     int // standbys copied and promoted
	unclaimed  int // times that there was nothing to be proven
	decoded    int // slots
	owed       int // rows and messages that these had to give
	unproven   int // slots on copies that were not claimed
	renewed    int // slots whose loss was told, made anew
	fenced     int // verdicts of controllers that were refused by the fence
	still      int // times that nobody led and no mirror may move

	committed, delivered, duplicated, lost int // of the consumers
	acknowledged, unreplicated             int
	streams                                int
	slowest                                time.Duration // from healed to all SAFE
	notDone                                map[string]int
}

func newReport() *report { return &report{steps: map[string]int{}, notDone: map[string]int{}} }

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
seed                 %d, PostgreSQL %d, %s
steps                %d in %d rounds: %s
promotions           %d; old primaries rewound %d, rebuilt %d
leaders              %d epochs, %d documents of theirs seen; %d verdicts "fenced"
copies               %d standbys copied, promoted and decoded; %d times nothing was claimed
slots decoded        %d, which owed %d rows and messages; %d slots on copies were not claimed
positions read       %d times, of all nodes
nobody led           %d times, and no mirror moved
consumers            %d streams; rows committed %d, delivered %d, duplicated %d, lost %d; %d slots refused and made anew
asynchronous loss    %d of %d acknowledged rows, with their primaries
SAFE again           %s at most after everything was mended
violations           %d`,
		w.seed, w.lab.Major(), time.Since(w.begun).Round(time.Second), steps, r.rounds, strings.Join(lines, ", "),
		r.promotions, r.rewound, r.rebuilt, len(w.claims.leads), w.claims.seen, r.fenced,
		r.copies, r.unclaimed, r.decoded, r.owed, r.unproven, r.reads, r.still,
		r.streams, r.committed, r.delivered, r.duplicated, r.lost, r.renewed,
		r.unreplicated, r.acknowledged, r.slowest.Round(10*time.Millisecond), len(w.violations))
	for _, v := range w.violations {
		w.t.Logf("violation: %s", v)
	}
}
