package plan

import "testing"

// A consumer was ahead of the standby that was promoted: that is told of its slot,
// and not of another one that somebody has made there under its name.
func TestConsumerAheadOfThePromotedOne(t *testing.T) {
	for name, made := range map[string]bool{"its own slot": false, "a slot that somebody has made there": true} {
		t.Run(name, func(t *testing.T) {
			w := settled(t)
			w.catchUp("app") // nobody receives it
			w.turn()
			if made {
				app(w, "b").Marker, app(w, "b").Incarnation = nil, w.incarnation()
				app(w, "b").Plugin = "test_decoding"
			}
			w.promote("b")
			w.turn()
			if w.has(CondConsumerAhead) == made || w.has(CondSlotRecreated) != made {
				t.Errorf("conditions %v", w.conditions)
			}
			if ahead := w.memory.Slots["app"].Ahead; !made && (ahead.From != 0x30000 || ahead.To != 0x31000 || ahead.Jumped) {
				t.Errorf("ahead %+v", ahead)
			}
		})
	}
}
