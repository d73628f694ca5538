/*
 * incarnation.c
 *		Tells one slot directory from a later one of the same name.
 *
 * Inodes are reused at once and device numbers change at a reboot, so the
 * directory's birth time counts too, where the file system keeps one.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

#include "row.h"

#define UNIX_TO_POSTGRES_DAYS (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)

bool
incarnation_of(const char *slot_name, Incarnation *result)
{
	char		path[MAXPGPATH];
	struct statx st;

	memset(result, 0, sizeof(*result));
	snprintf(path, sizeof(path), "pg_replslot/%s", slot_name);
	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st) != 0)
	{
		if (errno == ENOENT || errno == ENOTDIR)
			return false;
		/* It may be there: to call it gone would have its mirrors dropped. */
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not look at the directory \"%s\": %m", path),
				 errhint("Let the server read pg_replslot. A container whose seccomp profile refuses statx must allow it.")));
	}
	if (!S_ISDIR(st.stx_mode))
		return false;

	result->inode = st.stx_ino;
	result->has_birth = (st.stx_mask & STATX_BTIME) != 0 &&
		(st.stx_btime.tv_sec != 0 || st.stx_btime.tv_nsec != 0);
	if (result->has_birth)
		result->birth =
			(st.stx_btime.tv_sec - (int64) UNIX_TO_POSTGRES_DAYS * SECS_PER_DAY) * USECS_PER_SEC +
			st.stx_btime.tv_nsec / 1000;
	return true;
}

bool
incarnation_same(const Incarnation *a, const Incarnation *b)
{
	if (!a->has_birth || !b->has_birth)
		return true;
	return a->inode == b->inode && a->birth == b->birth;
}

Datum
incarnation_datum(const Incarnation *inc, Oid type)
{
	static const Oid types[] = {TEXTOID, TIMESTAMPTZOID};
	TupleDesc	desc = lookup_rowtype_tupdesc(type, -1);
	Datum		values[2];
	bool		nulls[2] = {false, false};
	HeapTuple	tuple;

	row_type_check(desc, "incarnation", types, lengthof(types));
	values[0] = CStringGetTextDatum(psprintf(UINT64_FORMAT, inc->inode));
	values[1] = TimestampTzGetDatum(inc->birth);
	nulls[1] = !inc->has_birth;
	tuple = heap_form_tuple(desc, values, nulls);
	ReleaseTupleDesc(desc);
	return HeapTupleGetDatum(tuple);
}
