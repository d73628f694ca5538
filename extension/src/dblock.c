/*
 * dblock.c
 *		A slot's database must not be dropped while the slot is in our hands.
 *
 * The replay of DROP DATABASE takes the database's lock exclusively and then
 * drops its slots; an active one stops the standby. So the lock is taken before
 * the slot and before any LWLock, and never waited for: replay may wait for us,
 * but we never wait for replay with something in hand.
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/htup_details.h"
#include "catalog/pg_database.h"
#include "common/relpath.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "slotkeeper.h"

/* The pg_database row outlives the replay of the drop for a moment: look at the directory. */
static bool
directory_exists(Oid database)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	struct stat st;
	Oid			tablespace;
	char	   *path;

	if (!HeapTupleIsValid(tuple))
		return false;
	tablespace = ((Form_pg_database) GETSTRUCT(tuple))->dattablespace;
	ReleaseSysCache(tuple);
	path = GetDatabasePath(database, tablespace);
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

DatabaseState
database_lock(Oid database)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
	if (LockAcquire(&tag, AccessShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return DATABASE_BUSY;
	AcceptInvalidationMessages();
	if (directory_exists(database))
		return DATABASE_LOCKED;
	database_unlock(database);
	return DATABASE_GONE;
}

void
database_unlock(Oid database)
{
	UnlockSharedObject(DatabaseRelationId, database, 0, AccessShareLock);
}
