/*
 * slotfile.c
 *		A slot's state file, read back.
 *
 * CheckPointReplicationSlots logs a failed save and goes on, and a state.tmp
 * that one failed save left blocks all later ones. So a save counts only when
 * the file says what memory says.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "storage/fd.h"
#include "storage/lwlock.h"

#include "slotkeeper.h"

static bool
say(char **why, char *sentence)
{
	if (why != NULL)
		*why = sentence;
	return false;
}

static bool
file_is_sound(const CompatSlotOnDisk *file)
{
	size_t		unchecked = offsetof(CompatSlotOnDisk, version);
	pg_crc32c	crc;

	if (file->magic != COMPAT_SLOT_MAGIC || file->version != COMPAT_SLOT_VERSION ||
		file->length != sizeof(*file) - offsetof(CompatSlotOnDisk, slotdata))
		return false;
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, (const char *) file + unchecked, sizeof(*file) - unchecked);
	FIN_CRC32C(crc);
	return EQ_CRC32C(crc, file->checksum);
}

bool
statefile_read(const char *slot_name, ReplicationSlotPersistentData *data, char **why)
{
	char		path[MAXPGPATH];
	CompatSlotOnDisk file;
	ssize_t		n;
	int			fd;

	snprintf(path, sizeof(path), "pg_replslot/%s/state", slot_name);
	/* O_NONBLOCK: whatever else stands under that name, never wait for it. */
	fd = OpenTransientFile(path, O_RDONLY | O_NONBLOCK | PG_BINARY);
	if (fd < 0)
		return say(why, psprintf("Its state file cannot be opened: %s.", strerror(errno)));
	n = read(fd, &file, sizeof(file));
	CloseTransientFile(fd);
	if (n != sizeof(file) || !file_is_sound(&file))
		return say(why, pstrdup("Its state file is damaged."));
	*data = file.slotdata;
	return true;
}

bool
statefile_holds(const SlotLook *look, char **why)
{
	ReplicationSlotPersistentData data;

	if (!statefile_read(NameStr(look->data.name), &data, why))
		return false;
	if (data.restart_lsn == look->data.restart_lsn &&
		data.catalog_xmin == look->data.catalog_xmin &&
		data.persistency == look->data.persistency)
		return true;
	return say(why, psprintf("Its state file says restart_lsn %X/%X and catalog_xmin %u, memory says %X/%X and %u.",
							 LSN_FORMAT_ARGS(data.restart_lsn), data.catalog_xmin,
							 LSN_FORMAT_ARGS(look->data.restart_lsn), look->data.catalog_xmin));
}

/*
 * With the slot's I/O lock held nobody is writing, so a state.tmp that is there
 * now belongs to nobody.
 */
static void
remove_stale_tmp(ReplicationSlot *slot)
{
	char		path[MAXPGPATH];

	snprintf(path, sizeof(path), "pg_replslot/%s/state.tmp", NameStr(slot->data.name));
	LWLockAcquire(&slot->io_in_progress_lock, LW_EXCLUSIVE);
	if (unlink(path) == 0)
		ereport(LOG,
				(errmsg("removed stale file \"%s\"", path)));
	LWLockRelease(&slot->io_in_progress_lock);
}

static void
save(void *arg)
{
	remove_stale_tmp(MyReplicationSlot);
	ReplicationSlotMarkDirty();
	ReplicationSlotSave();
}

bool
slot_save(char **why)
{
	SlotLook	look;
	Failure		failure;

	if (!guarded(save, NULL, &failure))
	{
		failure_rethrow_if_cancel(&failure);
		return say(why, psprintf("Saving failed: %s.", failure.message));
	}
	look_at(MyReplicationSlot, &look);
	return statefile_holds(&look, why);
}
