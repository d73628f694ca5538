/*
 * fence.c
 *		Who may write on this node.
 *
 * pg_replslot/slotkeeper.fence holds the highest epoch that has written here. A
 * plain file in that directory is left alone by startup and checkpoints, and
 * taken away by pg_rewind and pg_basebackup. It is replaced by rename, so a lock
 * on it counts only while the locked file is still the one at that path.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/htup_details.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/typcache.h"
#include "utils/wait_event.h"

#include "slotkeeper.h"

#define FENCE_PATH "pg_replslot/slotkeeper.fence"
#define FENCE_TITLE "slotkeeper fence 1"

/* How long a call waits for another one that is writing here. */
#define FENCE_WAIT_MS 500
#define FENCE_NAP_MS 5

typedef enum FenceLock
{
	FENCE_LOCKED,
	FENCE_MISSING,
	FENCE_BUSY
} FenceLock;

PG_FUNCTION_INFO_V1(slotkeeper_raise_fence);
PG_FUNCTION_INFO_V1(slotkeeper_remove_fence);

void
require_replication_role(void)
{
	if (!superuser() && !has_rolreplication(GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to change replication slots"),
				 errdetail("The role \"%s\" has no REPLICATION attribute.",
						   GetUserNameFromId(GetUserId(), false)),
				 errhint("ALTER ROLE %s REPLICATION;",
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

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

static FenceLock
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

static TextFileState
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

static bool
refuse(Refusal *refusal, const char *code, char *detail, char *hint)
{
	refusal->code = code;
	refusal->detail = detail;
	refusal->hint = hint;
	return false;
}

/* Is this the server that the caller means? */
static bool
right_system(const Fence *fence, Refusal *refusal)
{
	if (fence->system_identifier == GetSystemIdentifier())
		return true;
	return refuse(refusal, "sysid_mismatch",
				  psprintf("This server's system identifier is " UINT64_FORMAT ", the caller's is " UINT64_FORMAT ".",
						   GetSystemIdentifier(), fence->system_identifier),
				  pstrdup("The connection string leads to another cluster."));
}

/* Scope and store of the file against the caller's. */
static bool
same_controller(const Fence *fence, const Fence *file, Refusal *refusal)
{
	if (strcmp(fence->scope, file->scope) == 0 && strcmp(fence->store, file->store) == 0)
		return true;
	return refuse(refusal, "foreign_epoch",
				  psprintf("This node's fence is of scope \"%s\", store %s; the caller's is of scope \"%s\", store %s.",
						   file->scope, file->store, fence->scope, fence->store),
				  pstrdup("Another controller writes here, or etcd was moved, wiped or restored. Stop the other one, then remove its fence."));
}

static bool
epoch_allowed(const Fence *fence, const Fence *file, Refusal *refusal)
{
	if (fence->epoch < file->epoch)
		return refuse(refusal, "fenced",
					  psprintf("Epoch " INT64_FORMAT " of \"%s\" has written here; the caller's is " INT64_FORMAT ".",
							   file->epoch, file->owner, fence->epoch),
					  pstrdup("A later leader is at work."));
	if (fence->epoch == file->epoch && strcmp(fence->owner, file->owner) != 0)
		return refuse(refusal, "fenced",
					  psprintf("Epoch " INT64_FORMAT " is that of \"%s\", not of \"%s\".",
							   file->epoch, file->owner, fence->owner),
					  pstrdup("Two controllers use the same epoch: their stores are not one."));
	return true;
}

static bool
right_place(const Fence *fence, CallPlace place, Refusal *refusal)
{
	TimeLineID	timeline;
	bool		in_recovery = RecoveryInProgress();

	if (place == ON_STANDBY && !in_recovery)
		return refuse(refusal, "not_in_recovery",
					  pstrdup("This server is a primary."), NULL);
	if (in_recovery)
		(void) GetXLogReplayRecPtr(&timeline);
	else
		timeline = GetWALInsertionTimeLine();
	if (timeline != fence->timeline)
		return refuse(refusal, "timeline_mismatch",
					  psprintf("This server is on timeline %u, the caller means timeline %u.",
							   timeline, fence->timeline),
					  in_recovery ? pstrdup("It follows once it has replayed to the fork.") : NULL);
	return true;
}

static bool
may_write(const Fence *fence, CallPlace place, Refusal *refusal)
{
	Fence		file;
	TextFileState state = fence_load(&file);
	char	   *raise = pstrdup("Call slotkeeper.raise_fence first.");

	if (state == TEXTFILE_ABSENT)
		return refuse(refusal, "fenced", pstrdup("This node has no fence."), raise);
	if (state == TEXTFILE_DAMAGED)
		return refuse(refusal, "fenced", pstrdup("The file " FENCE_PATH " is damaged."),
					  pstrdup("Remove that file from the data directory."));
	if (!same_controller(fence, &file, refusal) || !epoch_allowed(fence, &file, refusal))
		return false;
	if (fence->epoch > file.epoch)
		return refuse(refusal, "fenced",
					  psprintf("This node's fence stands at epoch " INT64_FORMAT ", the caller's is " INT64_FORMAT ".",
							   file.epoch, fence->epoch), raise);
	return right_place(fence, place, refusal);
}

bool
fence_enter(const Fence *fence, CallPlace place, int *lock, Refusal *refusal)
{
	memset(refusal, 0, sizeof(*refusal));
	if (!right_system(fence, refusal))
		return false;
	switch (fence_lock(false, lock))
	{
		case FENCE_MISSING:
			return refuse(refusal, "fenced", pstrdup("This node has no fence."),
						  pstrdup("Call slotkeeper.raise_fence first."));
		case FENCE_BUSY:
			return refuse(refusal, "busy_fence",
						  psprintf("Another call has been writing here for %d ms.", FENCE_WAIT_MS),
						  pstrdup("It is tried again in the next cycle."));
		case FENCE_LOCKED:
			break;
	}
	if (may_write(fence, place, refusal))
		return true;
	fence_leave(*lock);
	return false;
}

static void
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

/* With the file locked. */
static const char *
raise_locked(const Fence *fence, int lock)
{
	Fence		file;
	Refusal		refusal;
	bool		same = false;
	int			new_lock;
	TextFileState state = fence_load(&file);

	if (state == TEXTFILE_DAMAGED)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("file \"%s\" is damaged", FENCE_PATH),
				 errhint("Remove that file from the data directory.")));
	if (state == TEXTFILE_OK)
	{
		if (!same_controller(fence, &file, &refusal) || !epoch_allowed(fence, &file, &refusal))
			return refusal.code;
		same = fence->epoch == file.epoch;
	}
	if (same && fence->timeline == file.timeline)
	{
		if (futimens(lock, NULL) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not set the time of file \"%s\": %m", FENCE_PATH)));
		return "same";
	}
	fence_store(fence, &new_lock);
	fence_leave(new_lock);
	return same ? "same" : "raised";
}

Datum
slotkeeper_raise_fence(PG_FUNCTION_ARGS)
{
	Fence		fence;
	Refusal		refusal;
	const char *code;
	int			lock;

	arg_fence(fcinfo, 0, &fence);
	require_replication_role();
	if (!right_system(&fence, &refusal))
		PG_RETURN_TEXT_P(cstring_to_text(refusal.code));
	if (fence_lock(true, &lock) == FENCE_BUSY)
		PG_RETURN_TEXT_P(cstring_to_text("busy_fence"));
	code = raise_locked(&fence, lock);
	fence_leave(lock);
	PG_RETURN_TEXT_P(cstring_to_text(code));
}

static const char *
remove_locked(const Fence *fence)
{
	Fence		file;
	Refusal		refusal;
	TextFileState state = fence_load(&file);

	if (state == TEXTFILE_OK &&
		(!same_controller(fence, &file, &refusal) || !epoch_allowed(fence, &file, &refusal)))
		return refusal.code;
	if (unlink(FENCE_PATH) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", FENCE_PATH)));
	fsync_fname("pg_replslot", true);
	return state == TEXTFILE_ABSENT ? "absent" : "removed";
}

Datum
slotkeeper_remove_fence(PG_FUNCTION_ARGS)
{
	Fence		fence;
	Refusal		refusal;
	const char *code = "absent";
	int			lock;

	arg_fence(fcinfo, 0, &fence);
	require_replication_role();
	if (!right_system(&fence, &refusal))
		PG_RETURN_TEXT_P(cstring_to_text(refusal.code));
	switch (fence_lock(false, &lock))
	{
		case FENCE_MISSING:
			break;
		case FENCE_BUSY:
			code = "busy_fence";
			break;
		case FENCE_LOCKED:
			code = remove_locked(&fence);
			fence_leave(lock);
			break;
	}
	PG_RETURN_TEXT_P(cstring_to_text(code));
}

Datum
fence_datum(const Fence *fence, Oid type)
{
	TupleDesc	desc = lookup_rowtype_tupdesc(type, -1);
	Datum		values[6];
	bool		nulls[6] = {false};
	HeapTuple	tuple;

	if (desc->natts != lengthof(values))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("type slotkeeper.fence has %d columns, not %d",
						desc->natts, (int) lengthof(values)),
				 errhint("Drop the extension slotkeeper and create it again.")));
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
