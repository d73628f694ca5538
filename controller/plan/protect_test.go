package plan

import (
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// What covers a mirror, rule by rule: the model's directories always have a
// birth time, and its slots never pin less than they did.
func TestProtectionRules(t *testing.T) {
	source := cluster.Incarnation{Inode: 7} // a file system without birth times
	for _, tc := range []struct {
		name             string
		hold             hold
		markerTimeline   cluster.Timeline
		markerGeneration int64
		source           cluster.Incarnation
		recreated        bool
		slotPins         cluster.XID
		want             protection
	}{
		{"whole", hold{state: holdValid, xmin: 700, generation: 3}, 2, 3, source, false, 900, protWhole},
		{"held throughout", hold{state: holdValid, xmin: 700, generation: 3}, 2, 2, source, false, 900, protContinuous},
		{"held in an older generation", hold{state: holdValid, xmin: 700, generation: 2}, 2, 3, source, false, 900, protContinuous},
		{"left behind", hold{state: holdValid, xmin: 700, generation: 3}, 2, 1, source, false, 900, protGap},
		{"held from later on", hold{state: holdValid, xmin: 801, generation: 3}, 2, 3, source, false, 900, protGap},
		{"not held, the slot pins", hold{state: holdMissing}, 2, 3, source, false, 800, protWitnessed},
		{"not held, the slot pins from later on", hold{state: holdMissing}, 2, 3, source, false, 801, protGap},
		{"not held, a slot of an earlier timeline", hold{state: holdMissing}, 1, 3, source, false, 800, protGap},
		{"not held, another directory", hold{state: holdMissing}, 2, 3, cluster.Incarnation{Inode: 8}, false, 800, protGap},
		{"not held, made again", hold{state: holdMissing}, 2, 3, source, true, 800, protGap},
		{"not saved", hold{state: holdUnsettled, xmin: 700, generation: 3}, 2, 3, source, false, 800, protUnsettled},
	} {
		c := &cycle{hold: tc.hold, floors: map[string]int64{"b": 2}, m: Memory{Timeline: 2, Generation: 3}}
		tr := &tracked{recreated: tc.recreated, slot: cluster.Slot{Incarnation: source, EffectiveCatalogXmin: cluster.Some(tc.slotPins)}}
		mirror := cluster.Slot{CatalogXmin: cluster.Some(cluster.XID(800)), Marker: &cluster.Marker{Timeline: tc.markerTimeline, Generation: tc.markerGeneration, Source: tc.source}}
		if got := c.protectionOf(tr, "b", mirror); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestKeptReadsAreCoveredOrGone(t *testing.T) {
	source := cluster.Incarnation{Inode: 7, Birth: cluster.Some(epochZero)}
	for _, tc := range []struct {
		name   string
		hold   hold
		pinned bool
		slot   cluster.XID
		stays  bool
		held   bool
	}{
		{"held since the slot pinned it", hold{state: holdValid, xmin: 700}, true, 900, true, true},
		{"pinned by both", hold{state: holdValid, xmin: 700}, false, 800, true, true},
		{"a hold that may have come too late", hold{state: holdValid, xmin: 700}, false, 900, false, false},
		{"pinned by the slot only", hold{state: holdMissing}, true, 800, true, false},
		{"pinned by nothing", hold{state: holdMissing}, true, 900, false, false},
		{"the hold is past it", hold{state: holdValid, xmin: 801}, true, 900, false, false},
	} {
		c := &cycle{hold: tc.hold}
		tr := &tracked{slot: cluster.Slot{Incarnation: source, EffectiveCatalogXmin: cluster.Some(tc.slot)},
			kept: []Kept{{Position: cluster.Position{CatalogXmin: 800}, HoldPinned: tc.pinned, Source: source}}}
		got := c.covered(tr)
		if stays := len(got) == 1; stays != tc.stays || stays && got[0].HoldPinned != tc.held {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}
