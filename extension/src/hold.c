/*
 * hold.c
 *		hold(): the slot that keeps catalog rows for the mirrors of all nodes.
 *
 * It proves something only while it is continuous: it was set to not after X
 * while the slot whose mirror needs X still pinned X itself, and since then it
 * was never gone and never after X.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "storage/lwlock.h"
#include "utils/pg_lsn.h"

#include "hold.h"

PG_FUNCTION_INFO_V1(slotkeeper_hold);

typedef struct HoldCall
{
	const Fence *fence;
	int64		generation;
	Want	   *wants;
	int			nwants;
	bool		in_recovery;
	Outcome    *rows;
	int			nrows;
	bool	   *satisfied;
	TransactionId pinned;		/* what the hold pinned before, in memory and on disk */
	TransactionId target;
	Marker		marker;
	char	   *save_error;
} HoldCall;

static void
make_older(TransactionId *oldest, TransactionId x)
{
	if (!TransactionIdIsValid(*oldest) || TransactionIdPrecedes(x, *oldest))
		*oldest = x;
}

static void
all_rows(HoldCall *call, const char *code, const char *detail, const char *hint)
{
	for (int i = 0; i < call->nrows; i++)
	{
		outcome_is(&call->rows[i], code, "%s", detail);
		if (hint != NULL)
			outcome_hint(&call->rows[i], "%s", hint);
	}
}

/* Below replica a server with a slot would not start again (slot.c, RestoreSlotFromDisk). */
static bool
server_can(HoldCall *call)
{
	if (wal_level >= WAL_LEVEL_REPLICA)
		return true;
	all_rows(call, "wal_level", "wal_level is minimal here: no server starts so that has a slot.",
			 "Set wal_level = logical on this server and restart it.");
	return false;
}

/*
 * Before a standby's hold comes to pin older rows than it did: sessions may have
 * seen that nobody needs what is before x. From when on that is over is written
 * when it is; until then it is never.
 */
static void
begin_holding(HoldCall *call, TransactionId x)
{
	Marker	   *marker = &call->marker;

	if (!call->in_recovery || !COMPAT_SESSIONS_REMEMBER)
		return;
	if (!TransactionIdIsNormal(marker->unheld_before) || TransactionIdPrecedes(marker->unheld_before, x))
		marker->unheld_before = x;
	marker->held_since = DT_NOEND;
	marker->held_from = PG_UINT64_MAX;
}

/* A hold that pins nothing yet holds for nobody. */
static void
holds_now(HoldCall *call)
{
	if (!call->in_recovery || call->marker.held_since != DT_NOEND ||
		!TransactionIdIsNormal(MyReplicationSlot->data.catalog_xmin))
		return;
	compat_forget_horizons();
	call->marker.held_since = sessions_all_began_before();
	call->marker.held_from = GetXLogReplayRecPtr(NULL);
	(void) marker_write(HOLD_NAME, &call->marker);
}

/*
 * What a mirror here pins says nothing of what sessions have seen: it may have been
 * made beside an older one, because none of the rows that it needs had died.
 */
static void
make_hold(HoldCall *call)
{
	char	   *why;

	hand_create(HOLD_NAME, false);
	marker_init(&call->marker, MARKER_HOLD, call->fence, call->generation);
	begin_holding(call, ReadNextTransactionId());
	(void) marker_write(HOLD_NAME, &call->marker);
	if (!hand_persist(&why))
		ereport(ERROR,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("could not save slot \"%s\": %s", HOLD_NAME, why)));
}

/* Whether any mirror or want is older than what the hold in hand pins. */
static bool
will_lower(const HoldCall *call)
{
	TransactionId now = MyReplicationSlot->data.catalog_xmin;

	if (!TransactionIdIsNormal(now))
		return call->nwants > 0 || TransactionIdIsValid(call->target);
	for (int i = 0; i < call->nwants; i++)
		if (TransactionIdPrecedes(call->wants[i].catalog_xmin, now))
			return true;
	return TransactionIdIsValid(call->target) && TransactionIdPrecedes(call->target, now);
}

/* Takes the existing hold in hand; false where it must not be used. */
static bool
take_existing(HoldCall *call)
{
	SlotLook	look;
	Marker		marker;

	hand_acquire(HOLD_NAME);
	look_at(MyReplicationSlot, &look);
	if (!marker_is_ours(HOLD_NAME, call->fence, &marker) || marker.kind != MARKER_HOLD)
	{
		all_rows(call, "not_ours", "The slot " HOLD_NAME " here has no marker of this controller.",
				 "SELECT pg_drop_replication_slot('" HOLD_NAME "'); then it is made anew.");
		return false;
	}
	if (call->generation < marker.generation ||
		(!hold_is_untouched(&look) && call->generation == marker.generation))
	{
		all_rows(call, "not_pinned",
				 psprintf("The hold here is of generation " INT64_FORMAT ", the caller's is " INT64_FORMAT "%s.",
						  marker.generation, call->generation,
						  hold_is_untouched(&look) ? "" : ", and somebody has used it since"),
				 "Begin a new generation.");
		return false;
	}
	if (!hold_is_untouched(&look))
	{
		hand_drop();
		make_hold(call);
		return true;
	}
	marker_init(&call->marker, MARKER_HOLD, call->fence, call->generation);
	call->marker.unheld_before = marker.unheld_before;
	call->marker.held_since = marker.held_since;
	call->marker.held_from = marker.held_from;
	if (will_lower(call))
		begin_holding(call, TransactionIdIsNormal(look.data.catalog_xmin) ? look.data.catalog_xmin : ReadNextTransactionId());
	(void) marker_write(HOLD_NAME, &call->marker);
	call->pinned = hold_pinned_by(&look);
	return true;
}

/* What the mirrors of this node need always counts. */
static void
count_mirrors(HoldCall *call)
{
	int			count;
	SlotLook   *looks = look_at_all_slots(&count);

	for (int i = 0; i < count; i++)
	{
		Marker		marker;

		if (LookIsPhysical(&looks[i]) || looks[i].data.persistency != RS_PERSISTENT ||
			!TransactionIdIsNormal(looks[i].data.catalog_xmin) ||
			!marker_is_ours(NameStr(looks[i].data.name), call->fence, &marker))
			continue;
		/* on a primary an original pins for itself */
		if (marker.kind == MARKER_MIRROR || (marker.kind == MARKER_ORIGINAL && call->in_recovery))
			make_older(&call->target, looks[i].data.catalog_xmin);
	}
}

/* With the control lock held: does the slot itself still pin what is wanted? */
static bool
witnessed(const Want *want)
{
	ReplicationSlot *slot = compat_slot_find(NameStr(want->slot));
	SlotLook	look;

	if (slot == NULL)
		return false;
	look_at(slot, &look);
	return !LookIsPhysical(&look) && look.invalidated == NULL &&
		xid_not_after(look.effective_catalog_xmin, want->catalog_xmin);
}

static bool
is_incarnation(const Want *want)
{
	Incarnation now;

	return incarnation_of(NameStr(want->slot), &now) && incarnation_same(&now, &want->source);
}

/*
 * No slot of a primary can pin what has no transaction yet. A standby may lag
 * behind the primary whose slots are wanted.
 */
static bool
is_in_future(const HoldCall *call, const Want *want)
{
	return !call->in_recovery && TransactionIdPrecedes(ReadNextTransactionId(), want->catalog_xmin);
}

/*
 * The look at the witnesses and the setting are one step: nobody can advance
 * and publish in between. A slot that was another one before or after the step
 * is no witness. On a standby there is none: there only what is older than every
 * database is refused, since no slot can need it and after a promotion it would
 * stop vacuum for good.
 */
static void
look_and_lower(HoldCall *call)
{
	TransactionId current = MyReplicationSlot->data.catalog_xmin;
	TransactionId oldest = compat_oldest_xid();
	bool	   *known = palloc0(sizeof(bool) * (call->nwants + 1));
	bool	   *sane = palloc0(sizeof(bool) * (call->nwants + 1));

	/*
	 * Ids are in order only within half of all: one that is before the oldest may
	 * be after the hold, and would come between wants that it is not between.
	 */
	for (int i = 0; i < call->nwants; i++)
	{
		sane[i] = !is_in_future(call, &call->wants[i]) &&
			!TransactionIdPrecedes(call->wants[i].catalog_xmin, oldest);
		known[i] = call->wants[i].has_slot &&
			(call->in_recovery || is_incarnation(&call->wants[i]));
	}

	LWLockAcquire(ReplicationSlotControlLock, LW_EXCLUSIVE);
	for (int i = 0; i < call->nwants; i++)
	{
		Want	   *want = &call->wants[i];

		call->satisfied[i] = sane[i] &&
			(xid_not_after(call->pinned, want->catalog_xmin) ||
			 (known[i] && (call->in_recovery || witnessed(want))));
		if (call->satisfied[i])
			make_older(&call->target, want->catalog_xmin);
	}
	if (TransactionIdIsValid(call->target) &&
		(!TransactionIdIsValid(current) || TransactionIdPrecedes(call->target, current)))
		hold_set(call->target);
	LWLockRelease(ReplicationSlotControlLock);

	for (int i = 0; i < call->nwants; i++)
		if (call->satisfied[i] && known[i] && !call->in_recovery &&
			!xid_not_after(call->pinned, call->wants[i].catalog_xmin))
			call->satisfied[i] = is_incarnation(&call->wants[i]);
}

/* A want is held where both memory and the file, read back, pin it now. */
static void
answer(HoldCall *call)
{
	SlotLook	look;
	TransactionId pinned;
	TransactionId oldest;

	look_at(MyReplicationSlot, &look);
	pinned = hold_pinned_by(&look);
	oldest = compat_oldest_xid();
	for (int i = 0; i < call->nrows; i++)
	{
		Outcome    *row = &call->rows[i];
		const Want *want = i < call->nwants ? &call->wants[i] : NULL;

		row->catalog_xmin = look.data.catalog_xmin;
		if (want != NULL && !call->satisfied[i] && TransactionIdPrecedes(want->catalog_xmin, oldest))
			outcome_is(row, "not_pinned", "catalog_xmin %u is older than the oldest transaction id of all databases, %u.",
					   want->catalog_xmin, oldest);
		else if (want != NULL && !call->satisfied[i] && is_in_future(call, want))
			outcome_is(row, "not_pinned", "catalog_xmin %u is beyond the next transaction id here, %u.",
					   want->catalog_xmin, ReadNextTransactionId());
		else if (want != NULL && !call->satisfied[i])
			outcome_is(row, "not_pinned", want->has_slot ?
					   "The hold pins from %u on, and slot \"%s\" does not pin %u itself any more." :
					   "The hold pins from %u on%.0s, not from %u.",
					   look.data.catalog_xmin, NameStr(want->slot), want->catalog_xmin);
		else if (want != NULL ? xid_not_after(pinned, want->catalog_xmin) : call->save_error == NULL)
			outcome_is(row, "held", call->save_error ? "%s" : NULL, call->save_error);
		else
			outcome_is(row, "save_failed", "%s", call->save_error ? call->save_error : "The state file does not follow.");
	}
}

/* In a subtransaction. */
static void
hold_work(void *arg)
{
	HoldCall   *call = arg;
	SlotLook	look;

	count_mirrors(call);
	if (!look_at_slot(HOLD_NAME, &look))
		make_hold(call);
	else if (!take_existing(call))
	{
		hand_let_go();
		return;
	}
	look_and_lower(call);
	hold_publish();
	holds_now(call);
	if (TransactionIdIsValid(call->target) &&
		TransactionIdFollows(call->target, MyReplicationSlot->data.catalog_xmin))
		hold_raise(call->target, &call->save_error);
	else
		hold_save(&call->save_error);
	answer(call);
	hand_let_go();
}

static void
run_hold(HoldCall *call)
{
	Failure		failure;

	if (guarded(hold_work, call, &failure))
		return;
	hand_let_go();
	failure_rethrow_if_cancel(&failure);
	for (int i = 0; i < call->nrows; i++)
		outcome_failed(&call->rows[i], &failure);
}

static void
init_rows(HoldCall *call)
{
	call->nrows = Max(call->nwants, 1);
	call->rows = palloc0(sizeof(Outcome) * (call->nrows + 1));
	call->satisfied = palloc0(sizeof(bool) * (call->nrows + 1));
	for (int i = 0; i < call->nrows; i++)
		outcome_init(&call->rows[i], i < call->nwants && call->wants[i].has_slot ?
					 NameStr(call->wants[i].slot) : HOLD_NAME);
}

static XLogRecPtr
arg_wal(FunctionCallInfo fcinfo)
{
	XLogRecPtr	wal = PG_ARGISNULL(3) ? InvalidXLogRecPtr : PG_GETARG_LSN(3);

	if (wal != InvalidXLogRecPtr && !RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("slot \"%s\" is only for standbys", WAL_HOLD_NAME),
				 errdetail("This server is a primary: its own slots keep their WAL."),
				 errhint("Give wal as 0/0 to drop the slot, or as NULL to leave it alone.")));
	return wal;
}

Datum
slotkeeper_hold(PG_FUNCTION_ARGS)
{
	HoldCall	call = {0};
	Fence		fence;
	Refusal		refusal;
	XLogRecPtr	wal;
	int			lock;
	int			nrows;

	arg_fence(fcinfo, 0, &fence);
	call.fence = &fence;
	call.generation = arg_int64(fcinfo, 1, "generation", 1, PG_INT64_MAX);
	call.wants = arg_wants(fcinfo, 2, &call.nwants);
	wal = arg_wal(fcinfo);
	require_replication_role();
	outcomes_begin(fcinfo);
	init_rows(&call);
	outcome_init(&call.rows[call.nrows], WAL_HOLD_NAME);
	if (!PG_ARGISNULL(3))
		call.nrows++;

	if (!fence_enter(&fence, ON_ANY_NODE, &lock, &refusal))
	{
		outcomes_refuse(fcinfo, &refusal, &call.rows[0].name, sizeof(Outcome), call.nrows);
		return (Datum) 0;
	}
	call.in_recovery = RecoveryInProgress();
	nrows = call.nrows;
	if (server_can(&call))
	{
		if (!PG_ARGISNULL(3))
			wal_hold_set(&fence, call.generation, wal, &call.rows[--call.nrows]);
		run_hold(&call);
	}
	for (int i = 0; i < nrows; i++)
		outcome_put(fcinfo, &call.rows[i]);
	fence_leave(lock);
	return (Datum) 0;
}
