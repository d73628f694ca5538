/*
 * mark.c
 *		mark(): says which slots of a primary are managed. stamp(): gives the
 *		markers of mirrors another generation.
 *
 * Neither acquires the slot, for its consumer may be connected: a marker is
 * written while ReplicationSlotAllocationLock is held, so that nobody can drop
 * the slot and make another of that name meanwhile.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/lwlock.h"

#include "slotkeeper.h"

PG_FUNCTION_INFO_V1(slotkeeper_mark);
PG_FUNCTION_INFO_V1(slotkeeper_stamp);

typedef struct MarkCall
{
	const Fence *fence;
	const char *name;
	const Incarnation *incarnation; /* NULL for stamp */
	int64		generation;
	Outcome    *out;
} MarkCall;

static bool
is_managed_kind(MarkCall *call, const SlotLook *look)
{
	if (!LookIsPhysical(look) && look->data.persistency == RS_PERSISTENT)
		return true;
	outcome_is(call->out, "not_ours", "The slot \"%s\" is %s.", call->name,
			   LookIsPhysical(look) ? "physical" : "temporary");
	return false;
}

static void
mark_locked(MarkCall *call, const SlotLook *look)
{
	Incarnation own;
	Marker		marker;

	if (!is_managed_kind(call, look))
		return;
	if (!incarnation_of(call->name, &own) || !incarnation_same(&own, call->incarnation))
	{
		outcome_is(call->out, "retry", "The slot \"%s\" is another one of that name.", call->name);
		return;
	}
	if (look->invalidated != NULL)
	{
		outcome_is(call->out, "invalidated", "The slot \"%s\" is lost: %s.", call->name, look->invalidated);
		return;
	}
	if (marker_read(call->name, &marker) && strcmp(marker.scope, call->fence->scope) != 0)
	{
		outcome_is(call->out, "not_ours", "The slot \"%s\" is marked by scope \"%s\".", call->name, marker.scope);
		return;
	}
	marker_init(&marker, MARKER_ORIGINAL, call->fence, 0);
	marker.has_source = true;
	marker.source = own;
	outcome_is(call->out, marker_write(call->name, &marker) ? "marked" : "unchanged", NULL);
}

static void
stamp_locked(MarkCall *call, const SlotLook *look)
{
	Marker		marker;

	if (!is_managed_kind(call, look))
		return;
	if (!marker_is_ours(call->name, call->fence, &marker) || marker.kind != MARKER_MIRROR)
	{
		outcome_is(call->out, "not_ours", "The slot \"%s\" is not marked as a mirror of this controller.", call->name);
		return;
	}
	if (call->generation < marker.generation)
	{
		outcome_is(call->out, "not_pinned", "The mirror is of generation " INT64_FORMAT ", the caller's is " INT64_FORMAT ".",
				   marker.generation, call->generation);
		return;
	}
	marker.generation = call->generation;
	outcome_is(call->out, marker_write(call->name, &marker) ? "marked" : "unchanged", NULL);
}

/* In a subtransaction. */
static void
mark_work(void *arg)
{
	MarkCall   *call = arg;
	SlotLook	look;

	LWLockAcquire(ReplicationSlotAllocationLock, LW_SHARED);
	if (!look_at_slot(call->name, &look))
		outcome_is(call->out, "retry", "There is no slot \"%s\" here.", call->name);
	else
	{
		if (!LookIsPhysical(&look))
			outcome_position(call->out, &look.data);
		if (call->incarnation != NULL)
			mark_locked(call, &look);
		else
			stamp_locked(call, &look);
	}
	LWLockRelease(ReplicationSlotAllocationLock);
}

static void
mark_all(FunctionCallInfo fcinfo, const Fence *fence, const NameData *names,
		 const Incarnation *incarnations, int64 generation, int count)
{
	for (int i = 0; i < count; i++)
	{
		Outcome		out;
		Failure		failure;
		MarkCall	call = {fence, NameStr(names[i]), incarnations ? &incarnations[i] : NULL, generation, &out};

		CHECK_FOR_INTERRUPTS();
		outcome_init(&out, call.name);
		if (incarnations != NULL && RecoveryInProgress())
			outcome_is(&out, "retry", "This server is in recovery: originals are marked on the primary.");
		else if (!guarded(mark_work, &call, &failure))
		{
			failure_rethrow_if_cancel(&failure);
			outcome_failed(&out, &failure);
		}
		outcome_put(fcinfo, &out);
	}
}

Datum
slotkeeper_mark(PG_FUNCTION_ARGS)
{
	Fence		fence;
	Refusal		refusal;
	NameData   *names;
	Incarnation *incarnations;
	int			count;
	int			n;
	int			lock;

	arg_fence(fcinfo, 0, &fence);
	names = arg_names(fcinfo, 1, &count);
	incarnations = arg_incarnations(fcinfo, 2, &n);
	if (n != count)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("name has %d elements, incarnation has %d", count, n),
				 errhint("Give one incarnation for each name, in the same order.")));
	require_replication_role();
	outcomes_begin(fcinfo);
	if (!fence_enter(&fence, ON_ANY_NODE, &lock, &refusal))
	{
		outcomes_refuse(fcinfo, &refusal, names, sizeof(NameData), count);
		return (Datum) 0;
	}
	mark_all(fcinfo, &fence, names, incarnations, 0, count);
	fence_leave(lock);
	return (Datum) 0;
}

Datum
slotkeeper_stamp(PG_FUNCTION_ARGS)
{
	Fence		fence;
	Refusal		refusal;
	NameData   *names;
	int64		generation;
	int			count;
	int			lock;

	arg_fence(fcinfo, 0, &fence);
	generation = arg_int64(fcinfo, 1, "generation", 1, PG_INT64_MAX);
	names = arg_names(fcinfo, 2, &count);
	require_replication_role();
	outcomes_begin(fcinfo);
	if (!fence_enter(&fence, ON_ANY_NODE, &lock, &refusal))
	{
		outcomes_refuse(fcinfo, &refusal, names, sizeof(NameData), count);
		return (Datum) 0;
	}
	mark_all(fcinfo, &fence, names, NULL, generation, count);
	fence_leave(lock);
	return (Datum) 0;
}
