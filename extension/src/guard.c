/*
 * guard.c
 *		One slot's error must not end the batch, and no way out may leave a slot
 *		acquired or half made.
 *
 * A subtransaction cleans up after an error as core does (LWLocks, files,
 * buffers), but it does not know of MyReplicationSlot: that is done here. The
 * top level of a backend releases it too, but only after the transaction's locks
 * are gone; a slot must be let go while its database is still locked, or the
 * replay of a DROP DATABASE finds an active slot and stops the standby.
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "slotkeeper.h"

typedef enum Hand
{
	HAND_EMPTY,
	HAND_EXISTING,
	HAND_NEW
} Hand;

static Hand hand = HAND_EMPTY;
static bool exit_callback_registered = false;

bool
guarded(GuardedWork work, void *arg, Failure *failure)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool ok = false;

	memset(failure, 0, sizeof(*failure));
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(arg);
		ReleaseCurrentSubTransaction();
		ok = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		failure->edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		failure->sqlerrcode = failure->edata->sqlerrcode;
		failure->message = failure->edata->message ? failure->edata->message : "an error without a message";
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return ok;
}

void
failure_rethrow_if_cancel(const Failure *failure)
{
	int			category = ERRCODE_TO_CATEGORY(failure->sqlerrcode);

	/* query_canceled, admin_shutdown and the like; recovery conflicts */
	if (category == ERRCODE_OPERATOR_INTERVENTION || category == ERRCODE_TRANSACTION_ROLLBACK)
		ReThrowError(failure->edata);
}

/* On FATAL nothing is caught; this runs before the transaction's locks are given up. */
static void
let_go_at_exit(int code, Datum arg)
{
	hand_let_go();
}

static void
expect_empty_hand(void)
{
	if (MyReplicationSlot != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this session is using the replication slot \"%s\"",
						NameStr(MyReplicationSlot->data.name)),
				 errhint("Call slotkeeper's functions from a session of their own.")));
	if (!exit_callback_registered)
		before_shmem_exit(let_go_at_exit, 0);
	exit_callback_registered = true;
}

void
hand_acquire(const char *name)
{
	expect_empty_hand();
	hand = HAND_EXISTING;
	compat_slot_acquire(name);
}

void
hand_create(const char *name, bool logical)
{
	expect_empty_hand();
	hand = HAND_NEW;
	compat_slot_create(name, logical);
}

bool
hand_persist(char **why)
{
	SpinLockAcquire(&MyReplicationSlot->mutex);
	MyReplicationSlot->data.persistency = RS_PERSISTENT;
	SpinLockRelease(&MyReplicationSlot->mutex);

	/* until the file says so it is still a new slot, and dropped on any error */
	if (!slot_save(why))
		return false;
	hand = HAND_EXISTING;
	return true;
}

void
hand_let_go(void)
{
	Hand		was = hand;

	hand = HAND_EMPTY;
	if (was == HAND_EMPTY || MyReplicationSlot == NULL)
		return;
	if (was == HAND_NEW)
		compat_slot_drop_acquired();
	else
		ReplicationSlotRelease();
}

/*
 * Up to 16 a directory that cannot be taken away is only warned of: the slot is gone
 * from memory then, and there again, as old as it was, after a restart.
 */
void
hand_drop(void)
{
	NameData	name = MyReplicationSlot->data.name;
	Incarnation before;
	Incarnation after;
	bool		known = incarnation_of(NameStr(name), &before);

	hand = HAND_EMPTY;
	compat_slot_drop_acquired();
	if (known && incarnation_of(NameStr(name), &after) &&
		after.inode == before.inode && incarnation_same(&after, &before))
		ereport(ERROR,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("could not remove the directory of replication slot \"%s\"", NameStr(name)),
				 errdetail("The slot will be there again when the server is restarted."),
				 errhint("Mend the permissions of pg_replslot, restart this server, and drop the slot again.")));
}

void
slots_recompute(void)
{
	ReplicationSlotsComputeRequiredXmin(false);
	ReplicationSlotsComputeRequiredLSN();
}
