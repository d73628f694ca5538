/*
 * fence.c
 *		Who may write on this node: the latest leader of one controller, and only
 *		where it means to.
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "fence.h"

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
		timeline = compat_insert_timeline();
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
	{
		debris_remove();
		return true;
	}
	fence_leave(*lock);
	return false;
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
		debris_remove();
		if (futimens(lock, NULL) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not set the time of file \"%s\": %m", FENCE_PATH)));
		return "same";
	}
	debris_remove();
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
