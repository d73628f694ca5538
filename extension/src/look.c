/*
 * look.c
 *		Slots as they are in shared memory, copied under the locks so that no
 *		file is touched while one is held.
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "storage/spin.h"

#include "slotkeeper.h"

void
look_at(ReplicationSlot *slot, SlotLook *look)
{
	SpinLockAcquire(&slot->mutex);
	look->data = slot->data;
	look->effective_catalog_xmin = slot->effective_catalog_xmin;
	look->active_pid = compat_slot_active_pid(slot);
	SpinLockRelease(&slot->mutex);
	look->invalidated = compat_slot_invalidated(&look->data);
}

SlotLook *
look_at_all_slots(int *count)
{
	SlotLook   *looks = palloc(sizeof(SlotLook) * (max_replication_slots + 1));

	*count = 0;
	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];

		if (slot->in_use)
			look_at(slot, &looks[(*count)++]);
	}
	LWLockRelease(ReplicationSlotControlLock);
	return looks;
}

bool
look_at_slot(const char *name, SlotLook *look)
{
	ReplicationSlot *slot;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	slot = compat_slot_find(name);
	if (slot != NULL)
		look_at(slot, look);
	LWLockRelease(ReplicationSlotControlLock);
	return slot != NULL;
}

int
count_slots_in_use(void)
{
	int			count = 0;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
		count += ReplicationSlotCtl->replication_slots[i].in_use;
	LWLockRelease(ReplicationSlotControlLock);
	return count;
}
