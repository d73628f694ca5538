/*
 * drop.c
 *		drop(): takes away what is marked ours, and nothing else.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/lwlock.h"

#include "slotkeeper.h"

PG_FUNCTION_INFO_V1(slotkeeper_drop);

typedef struct DropCall
{
	const Fence *fence;
	const char *name;
	Outcome    *out;
} DropCall;

static bool
may_drop(DropCall *call, const SlotLook *look, Marker *marker)
{
	if (look->data.persistency == RS_PERSISTENT && !compat_slot_synced(&look->data) &&
		marker_is_ours(call->name, call->fence, marker))
		return true;
	outcome_is(call->out, "not_ours", "The slot \"%s\" has no marker of this controller.", call->name);
	return false;
}

/* On a primary an original is its consumer's: only our marker goes. */
static void
unmark(DropCall *call)
{
	SlotLook	look;
	Marker		marker;

	/* nobody can drop the slot and make another of that name meanwhile */
	LWLockAcquire(ReplicationSlotAllocationLock, LW_SHARED);
	if (look_at_slot(call->name, &look) && may_drop(call, &look, &marker))
	{
		marker_remove(call->name);
		outcome_is(call->out, "dropped", "marker removed, slot kept");
	}
	LWLockRelease(ReplicationSlotAllocationLock);
}

/* In a subtransaction, with the database locked where there still is one. */
static void
drop_work(void *arg)
{
	DropCall   *call = arg;
	SlotLook	look;
	Marker		marker;

	if (!look_at_slot(call->name, &look))
	{
		outcome_is(call->out, "unchanged", "There is no slot \"%s\" here.", call->name);
		return;
	}
	if (!may_drop(call, &look, &marker))
		return;
	if (marker.kind == MARKER_ORIGINAL && !RecoveryInProgress())
	{
		unmark(call);
		return;
	}
	hand_acquire(call->name);
	look_at(MyReplicationSlot, &look);
	if (may_drop(call, &look, &marker))
	{
		hand_drop();
		outcome_is(call->out, "dropped", NULL);
	}
	hand_let_go();
}

static void
drop_one(DropCall *call)
{
	SlotLook	look;
	Failure		failure;
	Oid			database = InvalidOid;
	DatabaseState state = DATABASE_GONE;

	if (look_at_slot(call->name, &look))
		database = look.data.database;
	if (OidIsValid(database))
		state = database_lock(database);
	if (state == DATABASE_BUSY)
	{
		outcome_is(call->out, "retry", "The database with OID %u is locked; it may be about to be dropped.", database);
		return;
	}
	if (!guarded(drop_work, call, &failure))
	{
		hand_let_go();
		failure_rethrow_if_cancel(&failure);
		outcome_failed(call->out, &failure);
	}
	if (state == DATABASE_LOCKED)
		database_unlock(database);
}

Datum
slotkeeper_drop(PG_FUNCTION_ARGS)
{
	Fence		fence;
	Refusal		refusal;
	NameData   *names;
	int			count;
	int			lock;

	arg_fence(fcinfo, 0, &fence);
	names = arg_names(fcinfo, 1, &count);
	require_replication_role();
	outcomes_begin(fcinfo);
	if (!fence_enter(&fence, ON_ANY_NODE, &lock, &refusal))
	{
		outcomes_refuse(fcinfo, &refusal, names, sizeof(NameData), count);
		return (Datum) 0;
	}
	for (int i = 0; i < count; i++)
	{
		Outcome		out;
		DropCall	call = {&fence, NameStr(names[i]), &out};

		CHECK_FOR_INTERRUPTS();
		outcome_init(&out, call.name);
		drop_one(&call);
		outcome_put(fcinfo, &out);
	}
	fence_leave(lock);
	return (Datum) 0;
}
