package plan

// State is a verdict's first word.
type State string

// The states, from best to worst.
const (
	Safe    State = "SAFE"
	Pending State = "PENDING"
	Unsafe  State = "UNSAFE"
	Unknown State = "UNKNOWN"
	Lost    State = "LOST"
)

// Reason is a stable code; "" goes with SAFE.
type Reason string

// The reasons. DESIGN.md gives the order in which they apply.
const (
	ReasonWALRemoved           Reason = "wal_removed"
	ReasonRowsRemoved          Reason = "rows_removed"
	ReasonWalLevelInsufficient Reason = "wal_level_insufficient"
	ReasonIdleTimeout          Reason = "idle_timeout"

	ReasonUnreachable Reason = "unreachable"
	ReasonStale       Reason = "stale"
	ReasonNoPrivilege Reason = "no_privilege"

	ReasonExtensionUnavailable Reason = "extension_unavailable"
	ReasonWrongEndpoint        Reason = "wrong_endpoint"
	ReasonTimelineMismatch     Reason = "timeline_mismatch"
	ReasonNotOurs              Reason = "not_ours"
	ReasonInUse                Reason = "in_use"
	ReasonWalLevel             Reason = "wal_level"
	ReasonPluginMissing        Reason = "plugin_missing"
	ReasonNoFreeSlot           Reason = "no_free_slot"
	ReasonPatroniWillDrop      Reason = "patroni_will_drop"
	ReasonTwoPhaseUnsupported  Reason = "two_phase_unsupported"
	ReasonProtectionGap        Reason = "protection_gap"
	ReasonHoldNotSaved         Reason = "hold_not_saved"
	ReasonSlotMissing          Reason = "slot_missing"
	ReasonConsumerAhead        Reason = "consumer_ahead"
	ReasonMirrorAhead          Reason = "mirror_ahead"
	ReasonFenced               Reason = "fenced"

	ReasonNew               Reason = "new"
	ReasonReceiveLag        Reason = "receive_lag"
	ReasonReplayLag         Reason = "replay_lag"
	ReasonWALMissing        Reason = "wal_missing"
	ReasonBadSnapshot       Reason = "bad_snapshot"
	ReasonNoConsistentPoint Reason = "no_consistent_point"
	ReasonOldSession        Reason = "old_session"
	ReasonDatabaseGone      Reason = "database_gone"
	ReasonBusy              Reason = "busy"
)

// The condition codes that this package gives.
const (
	CondNoLeader                = "no_leader"
	CondSplitBrain              = "split_brain"
	CondTimelineReset           = "timeline_reset"
	CondForeignEpoch            = "foreign_epoch"
	CondNoSafeCandidate         = "no_safe_candidate"
	CondRestartStuck            = "restart_lsn_stuck"
	CondHoldAge                 = "hold_age"
	CondHoldMissing             = "hold_missing"
	CondFeedbackOff             = "feedback_off"
	CondPhysicalSlotMissing     = "physical_slot_missing"
	CondPhysicalSlotInvalidated = "physical_slot_invalidated"
	CondSlotRecreated           = "slot_recreated"
	CondMirrorReplaced          = "mirror_replaced"
	CondPrimaryBehindMirror     = "primary_behind_mirror"
	CondLag                     = "lag"
	CondXminPinned              = "xmin_pinned"
	CondOrphanPhysicalSlot      = "orphan_physical_slot"
	CondControllerAbsent        = "controller_absent"
	// CondSlotInactive: nobody has come for a slot since the promotion.
	CondSlotInactive = "slot_inactive_after_failover"
	// CondConsumerAhead: a consumer has what the new primary does not have.
	CondConsumerAhead    = "consumer_ahead"
	CondMirrorUnselected = "mirror_unselected"
	// CondSlotMissing: a slot of the old primary is not on the new one. Never
	// made again at the current position: its consumer must know.
	CondSlotMissing = "slot_missing"
	// CondStandbyGateStalled: an entry of synchronized_standby_slots that no
	// standby comes through holds back the consumers of failover slots.
	CondStandbyGateStalled = "standby_gate_stalled"
	// CondStandbyGateUnmanaged: synchronized_standby_slots is to be managed and cannot be.
	CondStandbyGateUnmanaged = "standby_gate_unmanaged"
	// CondFailoverFlagPending: a slot had the failover flag on an earlier
	// primary and does not have it again yet.
	CondFailoverFlagPending = "failover_flag_pending"
	// CondSlotSyncStopped: a slot of the name of a failover slot keeps the
	// server's own worker from synchronizing any.
	CondSlotSyncStopped = "slot_sync_stopped"
	// CondIdleSlotTimeout: the server invalidates slots that nobody has in hand for a time.
	CondIdleSlotTimeout = "idle_slot_timeout"
	// CondProtectionGap: an unproven slot on a new primary is in use and could not be dropped,
	// or a mirror that is not selected any more was not protected, and is dropped.
	CondProtectionGap = "protection_gap"
)
