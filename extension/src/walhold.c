/*
 * walhold.c
 *		slotkeeper_wal: keeps, on a standby, the WAL that slots not mirrored
 *		there yet will need.
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "storage/spin.h"

#include "slotkeeper.h"
#include "wal.h"

typedef struct WalCall
{
	const Fence *fence;
	int64		generation;
	XLogRecPtr	wal;
	Outcome    *out;
} WalCall;

/* As ReplicationSlotReserveWal does: a restartpoint sees it, or has begun before. */
static void
set_restart(XLogRecPtr restart)
{
	ReplicationSlot *slot = MyReplicationSlot;

	LWLockAcquire(ReplicationSlotAllocationLock, LW_EXCLUSIVE);
	SpinLockAcquire(&slot->mutex);
	slot->data.restart_lsn = restart;
	SpinLockRelease(&slot->mutex);
	ReplicationSlotsComputeRequiredLSN();
	LWLockRelease(ReplicationSlotAllocationLock);
}

/* What is not replayed yet cannot have been removed. */
static bool
wal_is_there(WalCall *call)
{
	char	   *why;

	if (call->wal > wal_readable_to(NULL) || wal_exists_from(call->wal, &why))
		return true;
	outcome_is(call->out, "wal_missing", "WAL from %X/%X on is wanted: %s.", LSN_FORMAT_ARGS(call->wal), why);
	return false;
}

static void
make(WalCall *call)
{
	Marker		marker;
	char	   *why;

	hand_create(WAL_HOLD_NAME, false);
	set_restart(call->wal);
	if (!wal_is_there(call))
		return;
	marker_init(&marker, MARKER_WAL, call->fence, call->generation);
	(void) marker_write(WAL_HOLD_NAME, &marker);
	outcome_is(call->out, "held", NULL);
	call->out->restart_lsn = call->wal;
	if (!hand_persist(&why))
		outcome_is(call->out, "save_failed", "%s", why);
}

/*
 * Moving it on may let WAL go only once the file says so: a restartpoint saves
 * all slots before it removes anything. Where the WAL is gone it stays.
 */
static void
move(WalCall *call)
{
	XLogRecPtr	old = MyReplicationSlot->data.restart_lsn;
	char	   *why;

	set_restart(call->wal);
	if (!wal_is_there(call))
		set_restart(old);
	else if (slot_save(&why))
	{
		/* from 18 on what counts for the removal of WAL is what was saved */
		ReplicationSlotsComputeRequiredLSN();
		outcome_is(call->out, "held", NULL);
	}
	else
	{
		set_restart(old);
		outcome_is(call->out, "save_failed", "%s", why);
	}
	call->out->restart_lsn = MyReplicationSlot->data.restart_lsn;
}

static void
stay(WalCall *call)
{
	SlotLook	look;
	char	   *why;

	look_at(MyReplicationSlot, &look);
	call->out->restart_lsn = look.data.restart_lsn;
	if (!wal_is_there(call))
		return;
	if (statefile_holds(&look, NULL) || slot_save(&why))
		outcome_is(call->out, "held", NULL);
	else
		outcome_is(call->out, "save_failed", "%s", why);
}

static void
change_existing(WalCall *call)
{
	SlotLook	look;
	Marker		marker;

	hand_acquire(WAL_HOLD_NAME);
	look_at(MyReplicationSlot, &look);
	if (!marker_is_ours(WAL_HOLD_NAME, call->fence, &marker) || marker.kind != MARKER_WAL)
	{
		outcome_is(call->out, "not_ours", "The slot " WAL_HOLD_NAME " here has no marker of this controller.");
		outcome_hint(call->out, "SELECT pg_drop_replication_slot('" WAL_HOLD_NAME "'); then it is made anew.");
	}
	else if (call->wal == InvalidXLogRecPtr)
	{
		hand_drop();
		outcome_is(call->out, "dropped", NULL);
	}
	else if (look.invalidated != NULL || look.data.restart_lsn == InvalidXLogRecPtr)
	{
		/* it keeps nothing any more, also where it still says from where on (idle_timeout) */
		hand_drop();
		make(call);
	}
	else if (look.data.restart_lsn == call->wal)
		stay(call);
	else
		move(call);
}

/* In a subtransaction. */
static void
wal_work(void *arg)
{
	WalCall    *call = arg;
	SlotLook	look;

	if (look_at_slot(WAL_HOLD_NAME, &look))
		change_existing(call);
	else if (call->wal == InvalidXLogRecPtr)
		outcome_is(call->out, "unchanged", "There is no slot " WAL_HOLD_NAME " here.");
	else
		make(call);
	hand_let_go();
}

void
wal_hold_set(const Fence *fence, int64 generation, XLogRecPtr wal, Outcome *out)
{
	WalCall		call = {fence, generation, wal, out};
	Failure		failure;

	if (guarded(wal_work, &call, &failure))
		return;
	hand_let_go();
	failure_rethrow_if_cancel(&failure);
	outcome_failed(out, &failure);
}
