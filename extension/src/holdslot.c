/*
 * holdslot.c
 *		The slot slotkeeper_hold itself: whether it counts, and how it is lowered,
 *		raised and saved.
 */
#include "postgres.h"

#include "access/transam.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "storage/spin.h"

#include "hold.h"

/* The aggregate follows at once; on some minors a concurrent update can be lost. */
#define AGGREGATE_TRIES 100

/*
 * Two that are half of all transaction ids apart precede each other, and neither
 * follows: there a hold that took one for the other's elder would be raised.
 */
bool
xid_not_after(TransactionId a, TransactionId x)
{
	return TransactionIdIsNormal(a) && !TransactionIdFollows(a, x) && x - a != 0x80000000;
}

/* A hold that somebody connected to, or that lost its WAL, proves nothing. */
bool
hold_is_untouched(const SlotLook *look)
{
	return LookIsPhysical(look) && look->data.persistency == RS_PERSISTENT &&
		look->invalidated == NULL && look->data.restart_lsn == InvalidXLogRecPtr &&
		!TransactionIdIsValid(look->data.xmin) &&
		(look->active_pid == 0 || look->active_pid == MyProcPid);
}

/* Marker and state file are still what was seen: of this directory, and with this in memory. */
static bool
still_as_seen(const HoldSeen *seen, const SlotLook *look)
{
	Incarnation now;

	return seen->valid && seen->catalog_xmin == look->data.catalog_xmin &&
		incarnation_of(HOLD_NAME, &now) && now.inode == seen->own.inode && incarnation_same(&now, &seen->own);
}

static bool
files_say_so(const Fence *fence, const SlotLook *look, HoldSeen *seen, char **why)
{
	Marker		marker;

	memset(seen, 0, sizeof(*seen));
	if (!marker_is_ours(HOLD_NAME, fence, &marker) || marker.kind != MARKER_HOLD)
	{
		*why = pstrdup("The slot " HOLD_NAME " here has no marker of this controller.");
		return false;
	}
	if (!statefile_holds(look, why))
		return false;
	seen->valid = true;
	seen->own = marker.own;
	seen->catalog_xmin = look->data.catalog_xmin;
	seen->generation = marker.generation;
	seen->unheld_before = marker.unheld_before;
	seen->held_since = marker.held_since;
	seen->held_from = marker.held_from;
	return true;
}

bool
hold_pins(const Fence *fence, TransactionId x, HoldSeen *seen, int64 *generation, char **why)
{
	SlotLook	look;

	if (!look_at_slot(HOLD_NAME, &look))
		*why = pstrdup("There is no slot " HOLD_NAME " here.");
	else if (!hold_is_untouched(&look))
		*why = pstrdup("The slot " HOLD_NAME " here is used by somebody else.");
	else if (!xid_not_after(look.data.catalog_xmin, x) || !xid_not_after(look.effective_catalog_xmin, x))
		*why = psprintf("The slot " HOLD_NAME " here pins from %u on, not from %u.", look.data.catalog_xmin, x);
	else if (still_as_seen(seen, &look) || files_say_so(fence, &look, seen, why))
	{
		*generation = seen->generation;
		return true;
	}
	return false;
}

/* The later of memory and disk: only that is pinned whatever happens. */
TransactionId
hold_pinned_by(const SlotLook *look)
{
	ReplicationSlotPersistentData file;

	if (!statefile_read(HOLD_NAME, &file, NULL) ||
		!TransactionIdIsNormal(file.catalog_xmin) ||
		!TransactionIdIsNormal(look->effective_catalog_xmin))
		return InvalidTransactionId;
	return TransactionIdFollows(file.catalog_xmin, look->effective_catalog_xmin) ?
		file.catalog_xmin : look->effective_catalog_xmin;
}

void
hold_set(TransactionId xid)
{
	ReplicationSlot *slot = MyReplicationSlot;

	SpinLockAcquire(&slot->mutex);
	slot->data.catalog_xmin = xid;
	slot->effective_catalog_xmin = xid;
	SpinLockRelease(&slot->mutex);
}

/* Recomputes until the aggregate that vacuum looks at has followed. */
void
hold_publish(void)
{
	TransactionId mine = MyReplicationSlot->effective_catalog_xmin;
	TransactionId all;

	for (int tries = 0; tries < AGGREGATE_TRIES; tries++)
	{
		ReplicationSlotsComputeRequiredXmin(false);
		ProcArrayGetReplicationSlotXmin(NULL, &all);
		if (!TransactionIdIsValid(mine) || xid_not_after(all, mine))
			return;
		CHECK_FOR_INTERRUPTS();
	}
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("the slots' catalog_xmin does not follow that of slot \"%s\"", HOLD_NAME),
			 errdetail("It is %u, the slot's is %u.", all, mine)));
}

/*
 * Disk first, then effective: after a crash the hold must not be older than what
 * vacuum has removed. The old value is back when the save fails.
 */
void
hold_raise(TransactionId target, char **why)
{
	ReplicationSlot *slot = MyReplicationSlot;
	TransactionId old = slot->data.catalog_xmin;
	volatile bool saved = false;

	SpinLockAcquire(&slot->mutex);
	slot->data.catalog_xmin = target;
	SpinLockRelease(&slot->mutex);
	PG_TRY();
	{
		saved = slot_save(why);
	}
	PG_FINALLY();
	{
		hold_set(saved ? target : old);
	}
	PG_END_TRY();
	hold_publish();
}

void
hold_save(char **why)
{
	SlotLook	look;

	look_at(MyReplicationSlot, &look);
	if (!statefile_holds(&look, NULL) && !slot_save(why))
		return;

	/* a raise that was killed between its save and its last step */
	if (look.effective_catalog_xmin != look.data.catalog_xmin)
	{
		hold_set(look.data.catalog_xmin);
		hold_publish();
	}
}
