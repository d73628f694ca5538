package plan

import (
	"fmt"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// succeeded reports whether a row says that what was asked for is so now.
func succeeded(code cluster.Code) bool {
	switch code {
	case cluster.CodeMade, cluster.CodeMoved, cluster.CodeUnchanged, cluster.CodeReplaced,
		cluster.CodeHeld, cluster.CodeMarked, cluster.CodeDropped, cluster.CodeEnded:
		return true
	}
	return false
}

// codeReasons says which verdict a refused change gives to a pair that has no
// good mirror. A hint of the extension's own goes before the one here.
var codeReasons = map[cluster.Code]struct {
	state       State
	reason      Reason
	words, hint string
}{
	cluster.CodeBackward:          {Unsafe, ReasonMirrorAhead, "what stands there is ahead of it", "it is moved when its consumer has confirmed beyond that"},
	cluster.CodeAheadOfReplay:     {Pending, ReasonReplayLag, "the standby has not replayed that far", "it is made as soon as the standby has"},
	cluster.CodeWALMissing:        {Pending, ReasonWALMissing, "the WAL that it needs is not there", "it heals when the slot's restart_lsn moves beyond what is missing"},
	cluster.CodeBadSnapshot:       {Pending, ReasonBadSnapshot, "its snapshot file is not good", "the file is fetched again from the primary"},
	cluster.CodeNoConsistentPoint: {Pending, ReasonNoConsistentPoint, "a decoder could not be proven to become consistent in time", "it heals when the slot's restart_lsn moves: let the transactions that are open end, and its consumer confirm"},
	cluster.CodeOldSession:        {Pending, ReasonOldSession, "a session there is older than the hold", "end it, or let it connect anew"},
	cluster.CodeNotOurs:           {Unsafe, ReasonNotOurs, "a slot of that name is there that slotkeeper did not make", "it is not touched; drop it if nobody needs it"},
	cluster.CodeInUse:             {Unsafe, ReasonInUse, "somebody is using the slot there", "consumers belong on the primary; disconnect this one"},
	cluster.CodeInvalidated:       {Lost, ReasonWALRemoved, "the server has invalidated the slot there", "it is dropped and made again"},
	cluster.CodeDatabaseGone:      {Pending, ReasonDatabaseGone, "its database is not there", "it heals when the standby has replayed the database's creation; a dropped database takes the slot along"},
	cluster.CodeWalLevel:          {Unsafe, ReasonWalLevel, "wal_level is below logical there", "set wal_level = logical there and restart it"},
	cluster.CodePluginMissing:     {Unsafe, ReasonPluginMissing, "its output plugin cannot be used there", "install the plugin's package on the standby too"},
	cluster.CodeNoFreeSlot:        {Unsafe, ReasonNoFreeSlot, "no replication slot is free there", "raise max_replication_slots there and restart it"},
	cluster.CodeNotPinned:         {Pending, ReasonBusy, "the hold could not be taken back to its catalog_xmin", "it is tried again with the next read of the slot"},
	cluster.CodeSaveFailed:        {Unsafe, ReasonHoldNotSaved, "a state file could not be saved", "look at that server's log and free space"},
	cluster.CodeFenced:            {Unsafe, ReasonFenced, "a later controller has written there", fencedHint},
	cluster.CodeForeignEpoch:      {Unsafe, ReasonFenced, "the fence there belongs to another store or scope", foreignHint},
	cluster.CodeBusyFence:         {Pending, ReasonBusy, "another call had the fence", againHint},
	cluster.CodeNotInRecovery:     {Unsafe, ReasonTimelineMismatch, "the node is not in recovery any more", "it is judged anew in the next cycle"},
	cluster.CodeSysidMismatch:     {Unsafe, ReasonWrongEndpoint, "the node is of another cluster", "mend the member's conninfo"},
	cluster.CodeTimelineMismatch:  {Unsafe, ReasonTimelineMismatch, "the node is on another timeline", "it is judged anew in the next cycle"},
	cluster.CodeRetry:             {Pending, ReasonBusy, "the call did not come through", againHint},
}

const fencedHint = "only one controller may write; stop the other one, or this one"

const againHint = "it is tried again by itself; look at that server's log if this stays"

// refusal turns a refused row into a finding.
func refusal(slot, node string, code cluster.Code, detail, hint string) *finding {
	known, ok := codeReasons[code]
	if !ok {
		known.state, known.reason, known.words, known.hint = Pending, ReasonBusy, fmt.Sprintf("the answer was %q", code), againHint
	}
	if hint == "" {
		hint = known.hint
	}
	return &finding{known.state, known.reason, sentence(fmt.Sprintf("%s could not be brought to %s", slot, node), known.words, detail), hint}
}

// passing reports whether a refusal says nothing of the mirror or the slot, so
// that what the read showed says more.
func passing(code cluster.Code) bool {
	return code == cluster.CodeRetry || code == cluster.CodeBusyFence || code == cluster.CodeNotPinned
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
		cluster.CodePluginMissing, cluster.CodeSysidMismatch, cluster.CodeTimelineMismatch, cluster.CodeNotInRecovery:
		return true
	case cluster.CodeWALMissing, cluster.CodeBadSnapshot:
		return mirror.OK && mirror.V.Restart == change.Position.Restart
	}
	return false
}
