/*
 * node.c
 *		node(): what this server says of itself, in one row.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/timeline.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "replication/walreceiver.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "slotkeeper.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(slotkeeper_node);

enum
{
	N_SYSTEM_IDENTIFIER, N_TIMELINE, N_HISTORY_TIMELINES, N_HISTORY_LSNS, N_IN_RECOVERY,
	N_INSERT_LSN, N_FLUSH_LSN, N_RECEIVE_LSN, N_REPLAY_LSN, N_STARTED, N_WAL_LEVEL,
	N_PRIMARY_SLOT_NAME, N_FEEDBACK, N_MAX_SLOTS, N_USED_SLOTS, N_CLOCK, N_FENCE,
	N_HEARTBEAT, N_LIBRARY, N_PROTOCOL, N_HELD_FOR_ALL_SINCE, NODE_COLUMNS
};

static void
put_lsn(Datum *values, bool *nulls, int i, XLogRecPtr lsn)
{
	nulls[i] = lsn == InvalidXLogRecPtr;
	values[i] = LSNGetDatum(lsn);
}

/* Where earlier timelines ended, oldest first. */
static void
put_history(Datum *values, TimeLineID timeline)
{
	List	   *history = readTimeLineHistory(timeline);
	int			n = list_length(history) - 1;
	Datum	   *timelines = palloc(sizeof(Datum) * (n + 1));
	Datum	   *lsns = palloc(sizeof(Datum) * (n + 1));

	for (int i = 0; i < n; i++)
	{
		TimeLineHistoryEntry *entry = list_nth(history, n - i);

		timelines[i] = Int64GetDatum((int64) entry->tli);
		lsns[i] = LSNGetDatum(entry->end);
	}
	values[N_HISTORY_TIMELINES] =
		PointerGetDatum(construct_array(timelines, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	values[N_HISTORY_LSNS] =
		PointerGetDatum(construct_array(lsns, n, LSNOID, sizeof(XLogRecPtr), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

static void
put_positions(Datum *values, bool *nulls)
{
	bool		in_recovery = RecoveryInProgress();
	TimeLineID	timeline;

	values[N_IN_RECOVERY] = BoolGetDatum(in_recovery);
	nulls[N_INSERT_LSN] = nulls[N_FLUSH_LSN] = in_recovery;
	nulls[N_RECEIVE_LSN] = nulls[N_REPLAY_LSN] = !in_recovery;
	if (in_recovery)
	{
		put_lsn(values, nulls, N_REPLAY_LSN, GetXLogReplayRecPtr(&timeline));
		put_lsn(values, nulls, N_RECEIVE_LSN, GetWalRcvFlushRecPtr(NULL, NULL));
	}
	else
	{
		put_lsn(values, nulls, N_INSERT_LSN, GetXLogInsertRecPtr());
		put_lsn(values, nulls, N_FLUSH_LSN, compat_flushed_to(&timeline));
	}
	values[N_TIMELINE] = Int64GetDatum((int64) timeline);
	put_history(values, timeline);
}

static void
put_settings(Datum *values, bool *nulls)
{
	values[N_STARTED] = TimestampTzGetDatum(PgStartTime);
	values[N_WAL_LEVEL] = CStringGetTextDatum(compat_wal_level());
	nulls[N_PRIMARY_SLOT_NAME] = PrimarySlotName == NULL || *PrimarySlotName == '\0';
	if (!nulls[N_PRIMARY_SLOT_NAME])
		values[N_PRIMARY_SLOT_NAME] = CStringGetTextDatum(PrimarySlotName);
	values[N_FEEDBACK] = BoolGetDatum(hot_standby_feedback);
	values[N_MAX_SLOTS] = Int32GetDatum(max_replication_slots);
	values[N_USED_SLOTS] = Int32GetDatum(count_slots_in_use());
	values[N_CLOCK] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[N_LIBRARY] = CStringGetTextDatum(SK_LIBRARY_VERSION);
	values[N_PROTOCOL] = Int32GetDatum(SK_PROTOCOL);
}

Datum
slotkeeper_node(PG_FUNCTION_ARGS)
{
	Datum		values[NODE_COLUMNS] = {0};
	bool		nulls[NODE_COLUMNS] = {false};
	TupleDesc	desc;
	Fence		fence;
	TimestampTz heartbeat;
	TimestampTz held_since;
	bool		fenced;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != NODE_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("slotkeeper.node() is not declared as this library knows it"),
				 errhint("Run ALTER EXTENSION slotkeeper UPDATE.")));
	desc = BlessTupleDesc(desc);

	values[N_SYSTEM_IDENTIFIER] = CStringGetTextDatum(psprintf(UINT64_FORMAT, GetSystemIdentifier()));
	put_positions(values, nulls);
	put_settings(values, nulls);
	fenced = fence_read(&fence, &heartbeat);
	nulls[N_FENCE] = nulls[N_HEARTBEAT] = !fenced;
	if (fenced)
	{
		values[N_FENCE] = fence_datum(&fence, TupleDescAttr(desc, N_FENCE)->atttypid);
		values[N_HEARTBEAT] = TimestampTzGetDatum(heartbeat);
	}
	nulls[N_HELD_FOR_ALL_SINCE] = !RecoveryInProgress() || !sessions_all_held(&held_since);
	if (!nulls[N_HELD_FOR_ALL_SINCE])
		values[N_HELD_FOR_ALL_SINCE] = TimestampTzGetDatum(held_since);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}
