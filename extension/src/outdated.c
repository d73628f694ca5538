/*
 * outdated.c
 *		Whether catalog rows have died in a stretch of WAL that a slot begins in.
 *
 * Who deletes or updates a catalog row leaves a NEW_CID record that says so. What
 * was running already where the stretch begins may have left it before that; such a
 * transaction counts when its commit tells others to forget what they know of the
 * catalogs.
 */
#include "postgres.h"

#include "access/heapam_xlog.h"
#include "access/transam.h"
#include "access/xact.h"
#include "utils/memutils.h"

#include "compat.h"
#include "slotkeeper.h"
#include "walk.h"
#include "walread.h"

typedef struct Stretch
{
	Oid			database;
	bool		begun;			/* it is known what was running */
	TransactionId began_later;	/* all from here on have begun in the stretch */
} Stretch;

static bool
deletes_row(const Stretch *stretch, XLogReaderState *record)
{
	const xl_heap_new_cid *cid = (const xl_heap_new_cid *) XLogRecGetData(record);
	Oid			database;

	if (XLogRecGetRmid(record) != RM_HEAP2_ID ||
		(XLogRecGetInfo(record) & XLOG_HEAP_OPMASK) != XLOG_HEAP2_NEW_CID ||
		cid->cmax == InvalidCommandId)
		return false;
	database = compat_new_cid_database(cid);
	return !OidIsValid(database) || database == stretch->database;
}

static bool
ends_older_change(const Stretch *stretch, XLogReaderState *record)
{
	uint8		operation = XLogRecGetInfo(record) & XLOG_XACT_OPMASK;
	xl_xact_parsed_commit commit;

	if (XLogRecGetRmid(record) != RM_XACT_ID ||
		(operation != XLOG_XACT_COMMIT && operation != XLOG_XACT_COMMIT_PREPARED))
		return false;
	ParseCommitRecord(XLogRecGetInfo(record), (xl_xact_commit *) XLogRecGetData(record), &commit);
	if ((commit.xinfo & XACT_XINFO_HAS_INVALS) == 0)
		return false;
	return operation == XLOG_XACT_COMMIT_PREPARED || !stretch->begun ||
		TransactionIdPrecedes(XLogRecGetXid(record), stretch->began_later);
}

/* At a shutdown nothing runs but what is prepared. */
static void
note_beginning(Stretch *stretch, XLogReaderState *record)
{
	const xl_running_xacts *running = walk_running_xacts(record);

	if (stretch->begun || !walk_is_snapshot_point(record))
		return;
	stretch->begun = true;
	stretch->began_later = running != NULL ? running->nextXid : FirstNormalTransactionId;
}

static bool
look(WalReader *reader, XLogRecPtr from, XLogRecPtr to, Oid database, XLogRecPtr *where)
{
	Stretch		stretch = {.database = database};
	char	   *why;

	*where = from;
	wal_reader_open(reader);
	if (!wal_reader_possible(from))
		return true;
	wal_reader_begin(reader, from);
	for (;;)
	{
		switch (wal_reader_next(reader, &why))
		{
			case WAL_READ_RECORD:
				break;
			case WAL_READ_NOT_YET:
				return false;
			case WAL_READ_FAILED:
				return true;
		}
		*where = reader->xlog->ReadRecPtr;
		if (*where >= to)
			return false;
		note_beginning(&stretch, reader->xlog);
		if (deletes_row(&stretch, reader->xlog) || ends_older_change(&stretch, reader->xlog))
			return true;
		CHECK_FOR_INTERRUPTS();
	}
}

bool
catalog_rows_died(XLogRecPtr from, XLogRecPtr to, Oid database, int64 max_bytes, XLogRecPtr *where)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context;
	WalReader	reader = {0};
	volatile bool died = true;

	*where = from;
	if (to <= from)
		return false;
	if (to - from > max_bytes)
		return true;
	context = AllocSetContextCreate(caller, "slotkeeper outdated", ALLOCSET_DEFAULT_SIZES);
	reader.fd = -1;
	PG_TRY();
	{
		MemoryContextSwitchTo(context);
		died = look(&reader, from, to, database, where);
	}
	PG_FINALLY();
	{
		wal_reader_close(&reader);
		MemoryContextSwitchTo(caller);
		MemoryContextDelete(context);
	}
	PG_END_TRY();
	return died;
}
