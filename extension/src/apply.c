/*
 * apply.c
 *		apply(): makes or moves mirrors on a standby, a row per slot.
 */
#include "postgres.h"

#include "access/timeline.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "slotkeeper.h"

PG_FUNCTION_INFO_V1(slotkeeper_apply);

/* Things that no waiting mends. */
static bool
server_can(MirrorCall *call)
{
	if (!compat_logical_allowed())
	{
		outcome_is(call->out, "wal_level", "wal_level is below logical here.");
		outcome_hint(call->out, "Set wal_level = logical on this server and restart it.");
		return false;
	}
	if (strcmp(NameStr(call->seen->plugin), NameStr(call->change->plugin)) == 0)
		return true;
	if (!plugin_exists(NameStr(call->change->plugin)))
	{
		outcome_is(call->out, "plugin_missing", "The library of output plugin \"%s\" is not installed here.",
				   NameStr(call->change->plugin));
		outcome_hint(call->out, "Install the package that holds it on this server.");
		return false;
	}
	if (!plugin_allowed(NameStr(call->change->plugin)))
	{
		outcome_is(call->out, "plugin_missing", "Output plugin \"%s\" is not among output_plugin_libraries here, so no consumer could use the slot.",
				   NameStr(call->change->plugin));
		outcome_hint(call->out, "Add it to output_plugin_libraries on this server and reload.");
		return false;
	}
	call->seen->plugin = call->change->plugin;
	return true;
}

static bool
held(MirrorCall *call)
{
	char	   *why;

	if (hold_pins(call->fence, call->change->catalog_xmin, &call->seen->hold, &call->generation, &why))
		return true;
	outcome_is(call->out, "not_pinned", "%s", why);
	outcome_hint(call->out, "Call slotkeeper.hold on the primary and then here first.");
	return false;
}

/* Was the mirror's position reached on a timeline that ended before it? */
static bool
past_fork(const Marker *marker, XLogRecPtr confirmed, TimeLineID now)
{
	List	   *history;

	if (marker->timeline == now)
		return false;
	history = readTimeLineHistory(now);
	if (!tliInHistory(marker->timeline, history))
		return true;
	return confirmed > tliSwitchPoint(marker->timeline, history, NULL);
}

/*
 * Whether this is the copy of another slot than the one now meant. After a
 * promotion the source is a directory of another node and always differs: then
 * only the fork tells.
 */
static bool
is_another(MirrorCall *call, const Marker *marker)
{
	const ReplicationSlotPersistentData *data = &MyReplicationSlot->data;
	const Change *c = call->change;

	if (compat_slot_invalidated(data) != NULL || data->restart_lsn == InvalidXLogRecPtr)
		return true;
	if (data->database != c->database || compat_slot_two_phase(data) != c->two_phase ||
		strcmp(NameStr(data->plugin), NameStr(c->plugin)) != 0)
		return true;
	if (marker->kind == MARKER_MIRROR && marker->timeline == call->fence->timeline &&
		!incarnation_same(&marker->source, &c->source))
		return true;
	return past_fork(marker, data->confirmed_flush, call->fence->timeline);
}

static bool
ours(MirrorCall *call, const SlotLook *look, Marker *marker)
{
	const char *name = NameStr(call->change->name);

	if (compat_slot_synced(&look->data))
	{
		outcome_is(call->out, "not_ours", "The slot \"%s\" here is a copy that the server's own slot synchronization keeps.", name);
		return false;
	}
	if (!LookIsPhysical(look) && look->data.persistency == RS_PERSISTENT &&
		marker_is_ours(name, call->fence, marker) &&
		(marker->kind == MARKER_MIRROR || marker->kind == MARKER_ORIGINAL))
		return true;
	outcome_is(call->out, "not_ours", "A %s slot \"%s\" without this controller's marker is here.",
			   LookIsPhysical(look) ? "physical" : look->data.persistency == RS_PERSISTENT ? "logical" : "temporary",
			   name);
	outcome_hint(call->out, "If nobody needs it on this server: SELECT pg_drop_replication_slot('%s'); then it is made anew.",
				 name);
	return false;
}

/*
 * Now that it is in hand: is it the one whose marker was read? Nobody else has
 * written markers since, for the fence is locked.
 */
static bool
the_same(MirrorCall *call, const Marker *marker)
{
	Incarnation now;
	SlotLook	look;

	look_at(MyReplicationSlot, &look);
	if (!LookIsPhysical(&look) && look.data.persistency == RS_PERSISTENT &&
		incarnation_of(NameStr(call->change->name), &now) &&
		now.inode == marker->own.inode && incarnation_same(&now, &marker->own))
		return true;
	outcome_is(call->out, "retry", "The slot \"%s\" here was dropped and made again at this moment.",
			   NameStr(call->change->name));
	return false;
}

static void
move_or_replace(MirrorCall *call, const Marker *marker)
{
	hand_acquire(NameStr(call->change->name));
	if (the_same(call, marker) && standby_has_replayed(call))
	{
		if (!is_another(call, marker))
			mirror_move(call, marker);
		else
		{
			hand_drop();
			call->out->restart_lsn = InvalidXLogRecPtr;
			call->out->confirmed_flush = InvalidXLogRecPtr;
			call->out->catalog_xmin = InvalidTransactionId;
			mirror_make(call, "replaced");
		}
	}
	hand_let_go();
}

/* With the database locked, in a subtransaction. */
static void
apply_work(void *arg)
{
	MirrorCall *call = arg;
	SlotLook	look;
	Marker		marker;
	bool		exists = look_at_slot(NameStr(call->change->name), &look);

	if (exists)
	{
		if (!LookIsPhysical(&look))
			outcome_position(call->out, &look.data);
		if (!ours(call, &look, &marker))
			return;
	}
	if (!server_can(call) || !standby_has_replayed(call) || !held(call))
		return;
	if (exists)
		move_or_replace(call, &marker);
	else
		mirror_make(call, "made");
}

static void
apply_one(MirrorCall *call)
{
	Oid			database = call->change->database;
	Failure		failure;

	switch (database_lock(database))
	{
		case DATABASE_BUSY:
			outcome_is(call->out, "retry", "The database with OID %u is locked; it may be about to be dropped.", database);
			return;
		case DATABASE_GONE:
			outcome_is(call->out, "database_gone", "There is no database with OID %u on this server.", database);
			return;
		case DATABASE_LOCKED:
			break;
	}
	if (!guarded(apply_work, call, &failure))
	{
		hand_let_go();
		failure_rethrow_if_cancel(&failure);
		outcome_failed(call->out, &failure);
	}
	database_unlock(database);
}

Datum
slotkeeper_apply(PG_FUNCTION_ARGS)
{
	Fence		fence;
	Refusal		refusal;
	Change	   *changes;
	int64		max_bytes;
	int			count;
	int			lock;
	Seen		seen = {0};
	MemoryContext whole;
	MemoryContext each;

	arg_fence(fcinfo, 0, &fence);
	changes = arg_changes(fcinfo, 1, &count);
	max_bytes = arg_int64(fcinfo, 2, "max_bytes", 1, PG_INT64_MAX);
	require_replication_role();
	outcomes_begin(fcinfo);
	if (!fence_enter(&fence, ON_STANDBY, &lock, &refusal))
	{
		outcomes_refuse(fcinfo, &refusal, &changes[0].name, sizeof(Change), count);
		return (Datum) 0;
	}
	compat_forget_horizons();	/* this session is not asked; see sessions.c */
	each = AllocSetContextCreate(CurrentMemoryContext, "slotkeeper slot", ALLOCSET_DEFAULT_SIZES);
	whole = MemoryContextSwitchTo(each);
	for (int i = 0; i < count; i++)
	{
		Outcome		out;
		MirrorCall	call = {&fence, &changes[i], max_bytes, 0, &out, &seen};

		CHECK_FOR_INTERRUPTS();
		outcome_init(&out, NameStr(changes[i].name));
		apply_one(&call);
		outcome_put(fcinfo, &out);
		MemoryContextReset(each);
	}
	MemoryContextSwitchTo(whole);
	MemoryContextDelete(each);
	fence_leave(lock);
	return (Datum) 0;
}
