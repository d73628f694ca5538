package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// succeeded reports whether a row says that what was asked for is so now.
func succeeded(code cluster.Code) bool {
	switch code {
	case cluster.CodeMade, cluster.CodeMoved, cluster.CodeUnchanged, cluster.CodeReplaced,
		cluster.CodeHeld, cluster.CodeMarked, cluster.CodeDropped:
		return true
	}
	return false
}

// codeReasons says which verdict a refused change gives to a pair that has no
// good mirror.
var codeReasons = map[cluster.Code]struct {
	state  State
	reason Reason
	words  string
}{
	cluster.CodeBackward:          {Unsafe, ReasonMirrorAhead, "what stands there is ahead of it"},
	cluster.CodeAheadOfReplay:     {Pending, ReasonReplayLag, "the standby has not replayed that far"},
	cluster.CodeWALMissing:        {Pending, ReasonWALMissing, "the WAL that it needs is not there"},
	cluster.CodeBadSnapshot:       {Pending, ReasonBadSnapshot, "its snapshot file is not good"},
	cluster.CodeNoConsistentPoint: {Pending, ReasonNoConsistentPoint, "a decoder could not be proven to become consistent in time"},
	cluster.CodeNotOurs:           {Unsafe, ReasonNotOurs, "a slot of that name is there that slotkeeper did not make"},
	cluster.CodeInUse:             {Unsafe, ReasonInUse, "somebody is using the slot there"},
	cluster.CodeInvalidated:       {Lost, ReasonWALRemoved, "the server has invalidated the slot there"},
	cluster.CodeDatabaseGone:      {Pending, ReasonDatabaseGone, "its database is not there"},
	cluster.CodeWalLevel:          {Unsafe, ReasonWalLevel, "wal_level is below logical there"},
	cluster.CodePluginMissing:     {Unsafe, ReasonPluginMissing, "its output plugin is not installed there"},
	cluster.CodeNoFreeSlot:        {Unsafe, ReasonNoFreeSlot, "no replication slot is free there"},
	cluster.CodeNotPinned:         {Pending, ReasonBusy, "the hold could not be taken back to its catalog_xmin"},
	cluster.CodeSaveFailed:        {Unsafe, ReasonHoldNotSaved, "a state file could not be saved"},
	cluster.CodeFenced:            {Unsafe, ReasonFenced, "a later controller has written there"},
	cluster.CodeForeignEpoch:      {Unsafe, ReasonFenced, "the fence there belongs to another store or scope"},
	cluster.CodeBusyFence:         {Pending, ReasonBusy, "another call had the fence"},
	cluster.CodeNotInRecovery:     {Unsafe, ReasonTimelineMismatch, "the node is not in recovery any more"},
	cluster.CodeSysidMismatch:     {Unsafe, ReasonWrongEndpoint, "the node is of another cluster"},
	cluster.CodeTimelineMismatch:  {Unsafe, ReasonTimelineMismatch, "the node is on another timeline"},
	cluster.CodeRetry:             {Pending, ReasonBusy, "the call did not come through"},
}

// refusal turns a refused row into a finding.
func refusal(slot, node string, code cluster.Code, detail, hint string) *finding {
	known, ok := codeReasons[code]
	if !ok {
		known.state, known.reason, known.words = Pending, ReasonBusy, fmt.Sprintf("the answer was %q", code)
	}
	message := sentence(fmt.Sprintf("%s could not be brought to %s", slot, node), known.words, detail)
	if code == cluster.CodeNoConsistentPoint && hint == "" {
		hint = "it heals when the slot's restart_lsn moves: let the transactions that are open end, and its consumer confirm"
	}
	return &finding{known.state, known.reason, message, hint}
}

// triedFinding repeats what the last try said, for a pair that is not tried again yet.
func triedFinding(pr *pair) *finding {
	return refusal(pr.t.slot.Name, pr.node, pr.note.Tried.Code, pr.note.Tried.Message, pr.note.Tried.Hint)
}

// withdraws reports whether a refused change says that the mirror itself, good
// as observed, is good no longer. All other refusals leave it where it is.
func withdraws(code cluster.Code, change cluster.Change, mirror cluster.Opt[cluster.Position]) bool {
	switch code {
	case cluster.CodeInvalidated, cluster.CodeNotOurs, cluster.CodeDatabaseGone, cluster.CodeFenced, cluster.CodeForeignEpoch,
		cluster.CodeSysidMismatch, cluster.CodeTimelineMismatch, cluster.CodeNotInRecovery:
		return true
	case cluster.CodeWALMissing, cluster.CodeBadSnapshot:
		return mirror.OK && mirror.V.Restart == change.Position.Restart
	}
	return false
}
