/*
 * slots.c
 *		slots(): every slot of this server, with what pg_replication_slots does
 *		not show: effective xmins, the directory's incarnation, the marker, and
 *		whether the files that it stands on are there.
 */
#include "postgres.h"

#include "access/transam.h"
#include "commands/dbcommands.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_lsn.h"
#include "utils/tuplestore.h"

#include "proof.h"
#include "slotkeeper.h"
#include "wal.h"

PG_FUNCTION_INFO_V1(slotkeeper_slots);

enum
{
	S_NAME, S_KIND, S_PLUGIN, S_DATABASE, S_DATABASE_OID, S_TEMPORARY, S_TWO_PHASE, S_TWO_PHASE_AT,
	S_RESTART_LSN, S_CONFIRMED, S_XMIN, S_CATALOG_XMIN, S_EFFECTIVE, S_INVALIDATED, S_ACTIVE_PID,
	S_INCARNATION, S_WAL_OK, S_SNAPSHOT, S_SAVED, S_MARKER, S_FAILOVER, S_SYNCED,
	SLOTS_COLUMNS
};

typedef struct SlotRow
{
	Datum		values[SLOTS_COLUMNS];
	bool		nulls[SLOTS_COLUMNS];
} SlotRow;

static void
put_lsn(SlotRow *row, int i, XLogRecPtr lsn)
{
	row->nulls[i] = lsn == InvalidXLogRecPtr;
	row->values[i] = LSNGetDatum(lsn);
}

static void
put_xid(SlotRow *row, int i, TransactionId xid)
{
	row->nulls[i] = !TransactionIdIsValid(xid);
	row->values[i] = TransactionIdGetDatum(xid);
}

static void
put_text(SlotRow *row, int i, const char *text)
{
	row->nulls[i] = text == NULL;
	if (text != NULL)
		row->values[i] = CStringGetTextDatum(text);
}

static void
put_logical(SlotRow *row, const SlotLook *look)
{
	char	   *database = get_database_name(look->data.database);

	put_text(row, S_KIND, "logical");
	row->values[S_PLUGIN] = NameGetDatum(&look->data.plugin);
	row->nulls[S_DATABASE] = database == NULL;
	if (database != NULL)
	{
		Name		name = palloc0(sizeof(NameData));

		namestrcpy(name, database);
		row->values[S_DATABASE] = NameGetDatum(name);
	}
	row->values[S_DATABASE_OID] = ObjectIdGetDatum(look->data.database);
}

/* The snapshot file that was looked at last: slots that stand together share one. */
typedef struct SnapshotSeen
{
	XLogRecPtr	at;				/* Invalid: none yet */
	SnapshotState state;
} SnapshotSeen;

/* Of the file that decoding begins with: the one that a mirror's proof rests on. */
static void
put_snapshot(SlotRow *row, const SlotLook *look, const Marker *marker, SnapshotSeen *seen)
{
	XLogRecPtr	at;

	row->nulls[S_SNAPSHOT] = LookIsPhysical(look) || XLogRecPtrIsInvalid(look->data.restart_lsn);
	if (row->nulls[S_SNAPSHOT])
		return;
	at = marker_file_at(marker, look->data.restart_lsn);
	if (at != seen->at)
		seen->state = snapshot_file_state(at, NULL);
	seen->at = at;
	put_text(row, S_SNAPSHOT, snapshot_state_name(seen->state));
}

/* What is in memory; look must live as long as row. */
static void
put_memory(SlotRow *row, const SlotLook *look)
{
	const ReplicationSlotPersistentData *data = &look->data;

	row->values[S_NAME] = NameGetDatum(&data->name);
	row->values[S_TEMPORARY] = BoolGetDatum(data->persistency == RS_TEMPORARY);
	row->values[S_TWO_PHASE] = BoolGetDatum(compat_slot_two_phase(data));
	put_lsn(row, S_TWO_PHASE_AT, compat_slot_two_phase_at(data));
	put_lsn(row, S_RESTART_LSN, data->restart_lsn);
	put_lsn(row, S_CONFIRMED, data->confirmed_flush);
	put_xid(row, S_XMIN, data->xmin);
	put_xid(row, S_CATALOG_XMIN, data->catalog_xmin);
	put_xid(row, S_EFFECTIVE, look->effective_catalog_xmin);
	put_text(row, S_INVALIDATED, look->invalidated);
	row->values[S_FAILOVER] = BoolGetDatum(compat_slot_failover(data));
	row->values[S_SYNCED] = BoolGetDatum(compat_slot_synced(data));
	row->nulls[S_ACTIVE_PID] = look->active_pid == 0;
	row->values[S_ACTIVE_PID] = Int32GetDatum((int32) look->active_pid);
	if (!LookIsPhysical(look))
		put_logical(row, look);
	else
	{
		put_text(row, S_KIND, "physical");
		row->nulls[S_PLUGIN] = row->nulls[S_DATABASE] = row->nulls[S_DATABASE_OID] = true;
	}
}

static void
put_files(SlotRow *row, const SlotLook *look, bool wal_ok, SnapshotSeen *seen, TupleDesc desc)
{
	const char *name = NameStr(look->data.name);
	Incarnation inc;
	Marker		marker;
	bool		marked = marker_read(name, &marker);

	if (marked)
		inc = marker.own;
	row->nulls[S_INCARNATION] = !marked && !incarnation_of(name, &inc);
	if (!row->nulls[S_INCARNATION])
		row->values[S_INCARNATION] = incarnation_datum(&inc, TupleDescAttr(desc, S_INCARNATION)->atttypid);
	row->values[S_WAL_OK] = BoolGetDatum(wal_ok);
	row->values[S_SAVED] = BoolGetDatum(statefile_holds(look, NULL));
	put_snapshot(row, look, marked ? &marker : NULL, seen);
	row->nulls[S_MARKER] = !marked;
	if (marked)
		row->values[S_MARKER] = marker_datum(&marker, TupleDescAttr(desc, S_MARKER)->atttypid);
}

static int
compare_restart(const void *a, const void *b)
{
	XLogRecPtr	x = ((const SlotLook *) a)->data.restart_lsn;
	XLogRecPtr	y = ((const SlotLook *) b)->data.restart_lsn;

	return x < y ? -1 : x > y;
}

Datum
slotkeeper_slots(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	XLogRecPtr	readable = wal_readable_to(NULL);
	bool		older_ok = false;
	SnapshotSeen seen = {InvalidXLogRecPtr};
	SlotLook   *looks;
	int			count;
	MemoryContext whole;
	MemoryContext each;

	compat_materialize(fcinfo);
	if (rsinfo->setDesc->natts != SLOTS_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("slotkeeper.slots() is not declared as this library knows it"),
				 errhint("Run ALTER EXTENSION slotkeeper UPDATE.")));

	looks = look_at_all_slots(&count);
	qsort(looks, count, sizeof(SlotLook), compare_restart);
	each = AllocSetContextCreate(CurrentMemoryContext, "slotkeeper slot", ALLOCSET_DEFAULT_SIZES);
	whole = MemoryContextSwitchTo(each);
	for (int i = 0; i < count; i++)
	{
		SlotRow		row = {0};
		XLogRecPtr	restart = looks[i].data.restart_lsn;
		bool		wal_ok = false;

		/* all WAL from an older position on is there, so from this one on too */
		if (restart != InvalidXLogRecPtr)
			wal_ok = (older_ok && restart <= readable) || wal_exists_from(restart, NULL);
		older_ok = wal_ok;
		put_memory(&row, &looks[i]);
		put_files(&row, &looks[i], wal_ok, &seen, rsinfo->setDesc);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row.values, row.nulls);
		MemoryContextReset(each);
	}
	MemoryContextSwitchTo(whole);
	MemoryContextDelete(each);
	return (Datum) 0;
}
