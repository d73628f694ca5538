/*
 * fencefile.c
 *		The file that holds the highest epoch that has written on this node.
 *
 * A plain file in pg_replslot is left alone by startup and checkpoints, and
 * taken away by pg_rewind and pg_basebackup. It is replaced by rename, so a lock
 * on it counts only while the locked file is still the one at that path.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

#include "fence.h"
#include "row.h"

#define FENCE_TITLE "slotkeeper fence 1"
#define FENCE_NAP_MS 5

static void
nap(void)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 FENCE_NAP_MS, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/* Whether fd is still the file that everybody else would open. */
static bool
is_current(int fd)
{
	struct stat opened;
	struct stat there;

	return fstat(fd, &opened) == 0 && stat(FENCE_PATH, &there) == 0 &&
		opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

FenceLock
fence_lock(bool create, int *lock)
{
	for (int waited = 0;; waited += FENCE_NAP_MS)
	{
		int			fd = OpenTransientFile(FENCE_PATH, O_RDWR | PG_BINARY | (create ? O_CREAT : 0));

		if (fd < 0 && errno == ENOENT && !create)
			return FENCE_MISSING;
		if (fd < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", FENCE_PATH)));
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		{
			if (is_current(fd))
			{
				*lock = fd;
				return FENCE_LOCKED;
			}
		}
		else if (errno != EWOULDBLOCK && errno != EINTR)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not lock file \"%s\": %m", FENCE_PATH)));
		CloseTransientFile(fd);
		if (waited >= FENCE_WAIT_MS)
			return FENCE_BUSY;
		nap();
	}
}

void
fence_leave(int lock)
{
	CloseTransientFile(lock);
}

TextFileState
fence_load(Fence *result)
{
	TextFile	file;
	TextFileState state = textfile_read(FENCE_PATH, FENCE_TITLE, &file);
	const char *scope = textfile_get(&file, "scope");
	const char *store = textfile_get(&file, "store");
	const char *owner = textfile_get(&file, "owner");
	uint64		timeline;

	memset(result, 0, sizeof(*result));
	if (state != TEXTFILE_OK)
		return state;
	if (scope == NULL || store == NULL || owner == NULL ||
		!textfile_get_int64(&file, "epoch", &result->epoch) ||
		!textfile_get_uint64(&file, "system_identifier", &result->system_identifier) ||
		!textfile_get_uint64(&file, "timeline", &timeline))
		return TEXTFILE_DAMAGED;
	result->scope = pstrdup(scope);
	result->store = pstrdup(store);
	result->owner = pstrdup(owner);
	result->timeline = (TimeLineID) timeline;
	return TEXTFILE_OK;
}

bool
fence_read(Fence *result, TimestampTz *heartbeat)
{
	struct stat st;

	if (fence_load(result) != TEXTFILE_OK || stat(FENCE_PATH, &st) != 0)
		return false;
	*heartbeat = time_t_to_timestamptz(st.st_mtim.tv_sec) + st.st_mtim.tv_nsec / 1000;
	return true;
}

void
fence_store(const Fence *fence, int *lock)
{
	StringInfoData buf;

	textfile_begin(&buf, FENCE_TITLE);
	textfile_put(&buf, "scope", "%s", fence->scope);
	textfile_put(&buf, "store", "%s", fence->store);
	textfile_put(&buf, "epoch", INT64_FORMAT, fence->epoch);
	textfile_put(&buf, "owner", "%s", fence->owner);
	textfile_put(&buf, "system_identifier", UINT64_FORMAT, fence->system_identifier);
	textfile_put(&buf, "timeline", "%u", fence->timeline);
	textfile_write(&buf, FENCE_PATH, lock);
}

Datum
fence_datum(const Fence *fence, Oid type)
{
	static const Oid types[] = {TEXTOID, TEXTOID, INT8OID, TEXTOID, TEXTOID, INT8OID};
	TupleDesc	desc = lookup_rowtype_tupdesc(type, -1);
	Datum		values[6];
	bool		nulls[6] = {false};
	HeapTuple	tuple;

	row_type_check(desc, "fence", types, lengthof(types));
	values[0] = CStringGetTextDatum(fence->scope);
	values[1] = CStringGetTextDatum(fence->store);
	values[2] = Int64GetDatum(fence->epoch);
	values[3] = CStringGetTextDatum(fence->owner);
	values[4] = CStringGetTextDatum(psprintf(UINT64_FORMAT, fence->system_identifier));
	values[5] = Int64GetDatum((int64) fence->timeline);
	tuple = heap_form_tuple(desc, values, nulls);
	ReleaseTupleDesc(desc);
	return HeapTupleGetDatum(tuple);
}
