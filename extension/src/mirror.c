/*
 * mirror.c
 *		Making and moving one mirror.
 *
 * A new one is RS_TEMPORARY until all that makes it safe is on disk: an error, a
 * cancel or a kill before that leaves nothing. A position is one read of the
 * primary: its three fields are set together, saved, and only then may catalog
 * rows and WAL go.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#include "proof.h"
#include "slotkeeper.h"
#include "wal.h"

bool
standby_has_replayed(MirrorCall *call)
{
	const Change *c = call->change;
	TimeLineID	timeline;
	XLogRecPtr	replay;

	if (!RecoveryInProgress())
	{
		outcome_is(call->out, "not_in_recovery", "This server was promoted.");
		return false;
	}
	replay = GetXLogReplayRecPtr(&timeline);
	if (timeline != call->fence->timeline)
		outcome_is(call->out, "timeline_mismatch", "This server is on timeline %u, the caller means timeline %u.",
				   timeline, call->fence->timeline);
	else if (replay < c->confirmed_flush)
		outcome_is(call->out, "ahead_of_replay", "Replay is at %X/%X, before confirmed_flush_lsn %X/%X.",
				   LSN_FORMAT_ARGS(replay), LSN_FORMAT_ARGS(c->confirmed_flush));
	else if (TransactionIdFollows(c->catalog_xmin, ReadNextTransactionId()))
		outcome_is(call->out, "ahead_of_replay", "catalog_xmin %u is beyond the next transaction id here, %u.",
				   c->catalog_xmin, ReadNextTransactionId());
	else
		return true;
	return false;
}

static void
set_position(ReplicationSlot *slot, const Change *c)
{
	compat_slot_set_two_phase(&slot->data, c->two_phase, c->two_phase_at);
	compat_slot_clear_failover(&slot->data);
	slot->data.restart_lsn = c->restart_lsn;
	slot->data.confirmed_flush = c->confirmed_flush;
	slot->data.catalog_xmin = c->catalog_xmin;
}

/*
 * A restartpoint reads the slots' oldest restart_lsn under the allocation lock;
 * so either it sees ours, or it has begun before, and what it removes is missed
 * when the files are looked at, now or in the next cycle.
 */
static void
reserve(const Change *c)
{
	ReplicationSlot *slot = MyReplicationSlot;

	LWLockAcquire(ReplicationSlotAllocationLock, LW_EXCLUSIVE);
	SpinLockAcquire(&slot->mutex);
	slot->data.database = c->database;
	slot->data.plugin = c->plugin;
	set_position(slot, c);
	slot->effective_catalog_xmin = c->catalog_xmin;
	SpinLockRelease(&slot->mutex);
	ReplicationSlotsComputeRequiredLSN();
	LWLockRelease(ReplicationSlotAllocationLock);
	ReplicationSlotsComputeRequiredXmin(false);
}

static bool
wal_is_there(MirrorCall *call)
{
	char	   *why;

	if (wal_exists_from(call->change->restart_lsn, &why))
		return true;
	outcome_is(call->out, "wal_missing", "%s.", why);
	return false;
}

/*
 * The same for a mirror that pins it already. Many slots of one call share one
 * look: each looking through pg_wal by itself takes slots times segments.
 */
static bool
wal_is_still_there(MirrorCall *call)
{
	XLogRecPtr	from = call->change->restart_lsn;
	XLogRecPtr *seen = &call->seen->wal_from;

	if (!XLogRecPtrIsInvalid(*seen) && from >= *seen)
		return true;
	if (!wal_is_there(call))
		return false;
	*seen = from;
	return true;
}

/* Puts the snapshot that came with the change in place and walks. */
static bool
prove(MirrorCall *call, Proof *proof)
{
	const Change *c = call->change;
	char	   *bad = NULL;
	bool		installed = true;

	/* a walk takes its time, and what was seen before it is old news after it */
	call->seen->wal_from = InvalidXLogRecPtr;
	if (c->snapshot != NULL)
		installed = snapshot_file_install(c->snapshot_at, VARDATA_ANY(c->snapshot),
										  VARSIZE_ANY_EXHDR(c->snapshot), &bad);
	*proof = proof_walk(c->restart_lsn, c->confirmed_flush, c->resume, call->max_bytes);
	if (proof->way >= PROOF_FILE)
	{
		call->out->way = proof_way_name(proof->way);
		call->out->proven_at = proof->proven_at;
		return true;
	}
	if (proof->way == PROOF_NONE && !installed)
		outcome_is(call->out, "bad_snapshot", "The snapshot for %X/%X is not valid: %s.",
				   LSN_FORMAT_ARGS(c->snapshot_at), bad ? bad : "no reason is known");
	else
		outcome_is(call->out, "no_consistent_point", "%s",
				   proof->detail ? proof->detail : "the walk is not finished");
	call->out->resume = proof->resume;
	return false;
}

static void
save_failed(MirrorCall *call, const char *why)
{
	call->out->way = NULL;
	call->out->proven_at = InvalidXLogRecPtr;
	outcome_is(call->out, "save_failed", "%s", why);
}

static void
init_marker(MirrorCall *call, Marker *marker)
{
	marker_init(marker, MARKER_MIRROR, call->fence, call->generation);
	marker->has_source = true;
	marker->source = call->change->source;
}

static void
set_proof(Marker *marker, const Proof *proof)
{
	marker->way = unconstify(char *, proof_way_name(proof->way));
	if (proof->way == PROOF_LATER_FILE)
		marker->witness = proof->proven_at;
}

/* Whether this way of proof is one that a file bears out. */
static bool
rests_on_file(const char *way)
{
	return strcmp(way, proof_way_name(PROOF_FILE)) == 0 ||
		strcmp(way, proof_way_name(PROOF_LATER_FILE)) == 0;
}

static bool
room_for_one(MirrorCall *call)
{
	int			used = count_slots_in_use();

	if (used < max_replication_slots)
		return true;
	outcome_is(call->out, "no_free_slot", "One more slot is needed for \"%s\", 0 are available: %d of %d are in use.",
			   NameStr(call->change->name), used, max_replication_slots);
	outcome_hint(call->out, "Free one, or raise max_replication_slots on this server and restart it.");
	return false;
}

/* Slots of one database share what one of them has found. */
static bool
rows_died(MirrorCall *call)
{
	const Change *c = call->change;
	Seen	   *seen = call->seen;
	XLogRecPtr	where;

	if (OidIsValid(seen->outdated) && seen->outdated == c->database && c->restart_lsn <= seen->outdated_at)
		return true;
	if (!catalog_rows_died(c->restart_lsn, seen->hold.held_from, c->database, call->max_bytes, &where))
		return false;
	seen->outdated = c->database;
	seen->outdated_at = where;
	return true;
}

/* Does any session that is older than the hold stand in the way? */
static bool
endangered(MirrorCall *call)
{
	char	   *which;

	if (!sessions_endanger(&call->seen->hold, call->change->catalog_xmin, &which) || !rows_died(call))
		return false;
	outcome_is(call->out, "old_session",
			   "Catalog rows that catalog_xmin %u needs were outdated before " HOLD_NAME " kept them here, and could be removed after a promotion by sessions that began before that: %s.",
			   call->change->catalog_xmin, which);
	outcome_hint(call->out, "End them, or let them connect anew: each remembers from before which rows nobody needed.");
	return true;
}

/* From 19 on it may have been turned off just before this slot was there to be invalidated. */
static bool
decoding_is_on(MirrorCall *call)
{
	if (compat_logical_allowed())
		return true;
	outcome_is(call->out, "retry", "Logical decoding was turned off here in this moment.");
	return false;
}

void
mirror_make(MirrorCall *call, const char *code)
{
	const Change *c = call->change;
	Marker		marker;
	Proof		proof;
	char	   *why;

	if (!wal_is_there(call) || !room_for_one(call) || endangered(call))
		return;
	hand_create(NameStr(c->name), true);
	reserve(c);
	if (decoding_is_on(call) && standby_has_replayed(call) && wal_is_there(call) && prove(call, &proof))
	{
		init_marker(call, &marker);
		set_proof(&marker, &proof);
		(void) marker_write(NameStr(c->name), &marker);
		if (hand_persist(&why))
		{
			outcome_is(call->out, code, NULL);
			outcome_position(call->out, &MyReplicationSlot->data);
		}
		else
			save_failed(call, why);
	}
	hand_let_go();
}

/* Puts the old position back, for nothing of it may go while the file says so. */
static bool
save_move(MirrorCall *call)
{
	ReplicationSlot *slot = MyReplicationSlot;
	ReplicationSlotPersistentData old = slot->data;
	volatile bool saved = false;
	char	   *why = NULL;

	SpinLockAcquire(&slot->mutex);
	set_position(slot, call->change);
	SpinLockRelease(&slot->mutex);
	PG_TRY();
	{
		saved = slot_save(&why);
	}
	PG_FINALLY();
	{
		SpinLockAcquire(&slot->mutex);
		if (saved)
			slot->effective_catalog_xmin = slot->data.catalog_xmin;
		else
			slot->data = old;
		SpinLockRelease(&slot->mutex);
	}
	PG_END_TRY();
	if (saved)
	{
		/* takes locks of its own: with none held */
		ReplicationSlotsComputeRequiredXmin(false);
		ReplicationSlotsComputeRequiredLSN();
	}
	else
		save_failed(call, why);
	return saved;
}

/* confirmed_flush_lsn alone is saved by the next restartpoint, as core does. */
static void
move_confirmed(const Change *c)
{
	SpinLockAcquire(&MyReplicationSlot->mutex);
	MyReplicationSlot->data.confirmed_flush = c->confirmed_flush;
	SpinLockRelease(&MyReplicationSlot->mutex);
	ReplicationSlotMarkDirty();
}

/*
 * Whether there is a proof at the new position; goes into the marker. The walk is
 * not repeated while restart_lsn stands: what it met lies before a
 * confirmed_flush_lsn that only grows. The file is looked at again: a
 * restartpoint may have taken it.
 */
static bool
prove_again(MirrorCall *call, const Marker *marker, Marker *now)
{
	const Change *c = call->change;
	bool		stands = c->restart_lsn == MyReplicationSlot->data.restart_lsn && marker->way != NULL;
	Proof		proof;

	init_marker(call, now);
	if (stands && (!rests_on_file(marker->way) ||
				   snapshot_file_state(marker_file_at(marker, c->restart_lsn), NULL) == SNAPSHOT_VALID))
	{
		now->way = marker->way;
		now->witness = marker->witness;
		call->out->way = now->way;
		return true;
	}
	if (!prove(call, &proof))
		return false;
	set_proof(now, &proof);
	return true;
}

static bool
would_go_back(MirrorCall *call)
{
	const ReplicationSlotPersistentData *data = &MyReplicationSlot->data;
	const Change *c = call->change;

	if (c->restart_lsn >= data->restart_lsn && c->confirmed_flush >= data->confirmed_flush &&
		!(TransactionIdIsValid(data->catalog_xmin) && TransactionIdPrecedes(c->catalog_xmin, data->catalog_xmin)))
		return false;
	outcome_is(call->out, "backward", "The primary reports %X/%X, %X/%X and %u: before the mirror.",
			   LSN_FORMAT_ARGS(c->restart_lsn), LSN_FORMAT_ARGS(c->confirmed_flush), c->catalog_xmin);
	return true;
}

void
mirror_move(MirrorCall *call, const Marker *marker)
{
	const ReplicationSlotPersistentData *data = &MyReplicationSlot->data;
	const Change *c = call->change;
	bool		same_saved = c->restart_lsn == data->restart_lsn && c->catalog_xmin == data->catalog_xmin &&
		c->two_phase_at == compat_slot_two_phase_at(data) && !compat_slot_failover(data);
	bool		same = same_saved && c->confirmed_flush == data->confirmed_flush;
	bool		file_first;
	Marker		now;

	if (would_go_back(call) || !wal_is_still_there(call))
		return;
	if (!prove_again(call, marker, &now))
		return;

	/*
	 * A kill may come between marker and state file. Whichever of the two ways
	 * rests on a file must be the one in the marker meanwhile: it is looked at
	 * again each time, the others are believed.
	 */
	file_first = rests_on_file(now.way);
	if (file_first)
		(void) marker_renew(NameStr(data->name), marker, &now);
	if (!same_saved && !save_move(call))
		return;
	if (same_saved && !same)
		move_confirmed(c);
	if (!file_first)
		(void) marker_renew(NameStr(data->name), marker, &now);
	outcome_is(call->out, same ? "unchanged" : "moved", NULL);
	outcome_position(call->out, data);
}
