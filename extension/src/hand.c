/*
 * hand.c
 *		The slot that this backend has acquired: no way out may leave it so, or half
 *		made.
 *
 * The top level of a backend releases a slot after an error too, but only after
 * the transaction's locks are gone; a slot must be let go while its database is
 * still locked, or the replay of a DROP DATABASE finds an active slot and stops
 * the standby.
 */
#include "postgres.h"

#include "storage/ipc.h"

#include "slotkeeper.h"

typedef enum Hand
{
	HAND_EMPTY,
	HAND_EXISTING,
	HAND_NEW
} Hand;

static Hand hand = HAND_EMPTY;
static bool exit_callback_registered = false;

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
