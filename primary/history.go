package primary

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// ParseHistory reads the history file of timeline tli. Each line is a timeline,
// where it ended, and why, in blanks; empty lines and those that begin with #
// are comments (timeline.c, readTimeLineHistory). Timelines must rise and stay
// below tli, positions must not fall: a fork read wrongly would let a mirror
// stand that the new timeline does not have.
func ParseHistory(content []byte, tli cluster.Timeline) ([]cluster.Fork, error) {
	var forks []cluster.Fork
	for i, line := range strings.Split(string(content), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fork, err := parseFork(line)
		if err == nil {
			err = inOrder(forks, fork, tli)
		}
		if err != nil {
			return nil, fmt.Errorf("parsing line %d of the history of timeline %d: %w", i+1, tli, err)
		}
		forks = append(forks, fork)
	}
	return forks, nil
}

func parseFork(line string) (cluster.Fork, error) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return cluster.Fork{}, fmt.Errorf("%q: want a timeline, a position and a reason", line)
	}
	t, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil || t == 0 {
		return cluster.Fork{}, fmt.Errorf("%q is not a timeline", fields[0])
	}
	l, err := cluster.ParseLSN(fields[1])
	if err != nil {
		return cluster.Fork{}, err
	}
	if l == 0 {
		return cluster.Fork{}, fmt.Errorf("timeline %d ends at 0/0, which is no position", t)
	}
	return cluster.Fork{Timeline: cluster.Timeline(t), LSN: l}, nil
}

func inOrder(before []cluster.Fork, next cluster.Fork, tli cluster.Timeline) error {
	if next.Timeline >= tli {
		return fmt.Errorf("timeline %d is not before %d", next.Timeline, tli)
	}
	if len(before) == 0 {
		return nil
	}
	last := before[len(before)-1]
	if next.Timeline <= last.Timeline {
		return fmt.Errorf("timeline %d comes after %d", next.Timeline, last.Timeline)
	}
	if next.LSN < last.LSN {
		return fmt.Errorf("timeline %d ends at %s, before timeline %d at %s", next.Timeline, next.LSN, last.Timeline, last.LSN)
	}
	return nil
}
