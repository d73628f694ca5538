/*
 * marker.c
 *		The file inside a slot's own directory that makes the slot ours.
 *
 * It survives restarts and kills, and goes with the slot. It holds its own
 * directory's inode and birth time: a copy of it is not the original. It holds
 * no position, so it is only written when its content changes.
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/typcache.h"

#include "proof.h"
#include "row.h"

#define MARKER_TITLE "slotkeeper marker 1"
#define MARKER_VERSION 1

static const char *const kind_names[] = {
	[MARKER_MIRROR] = "mirror",
	[MARKER_ORIGINAL] = "original",
	[MARKER_HOLD] = "hold",
	[MARKER_WAL] = "wal",
};

static void
marker_path(char *path, size_t size, const char *slot_name)
{
	snprintf(path, size, "pg_replslot/%s/slotkeeper", slot_name);
}

static bool
read_incarnation(const TextFile *file, const char *inode_key, const char *birth_key,
				 Incarnation *result)
{
	memset(result, 0, sizeof(*result));
	if (!textfile_get_uint64(file, inode_key, &result->inode))
		return false;
	result->has_birth = textfile_get_int64(file, birth_key, &result->birth);
	return true;
}

static bool
read_kind(const TextFile *file, MarkerKind *kind)
{
	const char *text = textfile_get(file, "kind");

	for (int i = 0; text != NULL && i < lengthof(kind_names); i++)
		if (strcmp(text, kind_names[i]) == 0)
		{
			*kind = i;
			return true;
		}
	return false;
}

/* Invalid where there is none: then no file bears the proof out. */
static XLogRecPtr
read_lsn(const TextFile *file, const char *key)
{
	const char *text = textfile_get(file, key);
	uint32		hi,
				lo;

	if (text == NULL || sscanf(text, "%X/%X", &hi, &lo) != 2)
		return InvalidXLogRecPtr;
	return ((uint64) hi) << 32 | lo;
}

static bool
read_fields(const TextFile *file, Marker *result)
{
	const char *scope = textfile_get(file, "scope");
	const char *store = textfile_get(file, "store");
	const char *way = textfile_get(file, "way");
	uint64		timeline;
	uint64		unheld_before;

	if (scope == NULL || store == NULL || !read_kind(file, &result->kind) ||
		!textfile_get_uint64(file, "system_identifier", &result->system_identifier) ||
		!textfile_get_uint64(file, "timeline", &timeline) ||
		!textfile_get_int64(file, "generation", &result->generation))
		return false;
	result->version = MARKER_VERSION;
	result->scope = pstrdup(scope);
	result->store = pstrdup(store);
	result->timeline = (TimeLineID) timeline;
	result->has_source = read_incarnation(file, "source_inode", "source_birth", &result->source);
	result->way = way != NULL ? pstrdup(way) : NULL;
	result->witness = read_lsn(file, "witness");
	if (textfile_get_uint64(file, "unheld_before", &unheld_before) &&
		textfile_get_int64(file, "held_since", &result->held_since))
	{
		result->unheld_before = (TransactionId) unheld_before;
		result->held_from = read_lsn(file, "held_from");
	}
	return true;
}

bool
marker_read(const char *slot_name, Marker *result)
{
	char		path[MAXPGPATH];
	TextFile	file;
	Incarnation written;
	Incarnation own;

	memset(result, 0, sizeof(*result));
	marker_path(path, sizeof(path), slot_name);
	if (textfile_read(path, MARKER_TITLE, &file) != TEXTFILE_OK)
		return false;
	if (!read_incarnation(&file, "inode", "birth", &written) ||
		!incarnation_of(slot_name, &own))
		return false;

	/* the inode is compared here even without a birth time: this is one node */
	if (written.inode != own.inode || !incarnation_same(&written, &own))
		return false;
	result->own = own;
	return read_fields(&file, result);
}

bool
marker_is_ours(const char *slot_name, const Fence *fence, Marker *marker)
{
	return marker_read(slot_name, marker) && strcmp(marker->scope, fence->scope) == 0;
}

void
marker_init(Marker *marker, MarkerKind kind, const Fence *fence, int64 generation)
{
	memset(marker, 0, sizeof(*marker));
	marker->version = MARKER_VERSION;
	marker->kind = kind;
	marker->scope = fence->scope;
	marker->store = fence->store;
	marker->system_identifier = fence->system_identifier;
	marker->timeline = fence->timeline;
	marker->generation = generation;
}

static void
put_incarnation(StringInfo buf, const char *inode_key, const char *birth_key,
				const Incarnation *inc)
{
	textfile_put(buf, inode_key, UINT64_FORMAT, inc->inode);
	if (inc->has_birth)
		textfile_put(buf, birth_key, INT64_FORMAT, inc->birth);
}

static void
marker_format(StringInfo buf, const Marker *marker, const Incarnation *own)
{
	textfile_begin(buf, MARKER_TITLE);
	textfile_put(buf, "kind", "%s", kind_names[marker->kind]);
	textfile_put(buf, "scope", "%s", marker->scope);
	textfile_put(buf, "store", "%s", marker->store);
	textfile_put(buf, "system_identifier", UINT64_FORMAT, marker->system_identifier);
	textfile_put(buf, "timeline", "%u", marker->timeline);
	textfile_put(buf, "generation", INT64_FORMAT, marker->generation);
	if (marker->has_source)
		put_incarnation(buf, "source_inode", "source_birth", &marker->source);
	if (marker->way != NULL)
		textfile_put(buf, "way", "%s", marker->way);
	if (!XLogRecPtrIsInvalid(marker->witness))
		textfile_put(buf, "witness", "%X/%X", LSN_FORMAT_ARGS(marker->witness));
	if (TransactionIdIsValid(marker->unheld_before))
	{
		textfile_put(buf, "unheld_before", "%u", marker->unheld_before);
		textfile_put(buf, "held_since", INT64_FORMAT, marker->held_since);
		textfile_put(buf, "held_from", "%X/%X", LSN_FORMAT_ARGS(marker->held_from));
	}
	put_incarnation(buf, "inode", "birth", own);
}

bool
marker_write(const char *slot_name, const Marker *marker)
{
	char		path[MAXPGPATH];
	StringInfoData now;
	StringInfoData then;
	Marker		old;
	Incarnation own;

	if (!incarnation_of(slot_name, &own))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("replication slot \"%s\" has no directory", slot_name)));
	marker_format(&now, marker, &own);
	if (marker_read(slot_name, &old))
	{
		marker_format(&then, &old, &own);
		if (strcmp(then.data, now.data) == 0)
			return false;
	}
	marker_path(path, sizeof(path), slot_name);
	textfile_write(&now, path, NULL);
	return true;
}

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_source(const Marker *a, const Marker *b)
{
	if (a->has_source != b->has_source)
		return false;
	return !a->has_source ||
		(a->source.inode == b->source.inode && a->source.has_birth == b->source.has_birth &&
		 a->source.birth == b->source.birth);
}

bool
marker_renew(const char *slot_name, const Marker *old, const Marker *marker)
{
	if (old->version == marker->version && old->kind == marker->kind &&
		same_text(old->scope, marker->scope) && same_text(old->store, marker->store) &&
		old->system_identifier == marker->system_identifier && old->timeline == marker->timeline &&
		old->generation == marker->generation && same_source(old, marker) &&
		same_text(old->way, marker->way) && old->witness == marker->witness)
		return false;
	return marker_write(slot_name, marker);
}

void
marker_remove(const char *slot_name)
{
	char		path[MAXPGPATH];
	char		dir[MAXPGPATH];

	marker_path(path, sizeof(path), slot_name);
	snprintf(dir, sizeof(dir), "pg_replslot/%s", slot_name);
	if (unlink(path) != 0 && errno != ENOENT)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", path)));
	fsync_fname(dir, true);
}

XLogRecPtr
marker_file_at(const Marker *marker, XLogRecPtr restart)
{
	if (marker != NULL && marker->way != NULL &&
		strcmp(marker->way, proof_way_name(PROOF_LATER_FILE)) == 0)
		return marker->witness;
	return restart;
}

Datum
marker_datum(const Marker *marker, Oid type)
{
	static const Oid types[] = {INT4OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, INT8OID, InvalidOid, TEXTOID, LSNOID,
		XIDOID, TIMESTAMPTZOID, LSNOID};
	TupleDesc	desc = lookup_rowtype_tupdesc(type, -1);
	Datum		values[13];
	bool		nulls[13] = {false};
	HeapTuple	tuple;

	row_type_check(desc, "marker", types, lengthof(types));
	values[0] = Int32GetDatum(marker->version);
	values[1] = CStringGetTextDatum(kind_names[marker->kind]);
	values[2] = CStringGetTextDatum(marker->scope);
	values[3] = CStringGetTextDatum(marker->store);
	values[4] = CStringGetTextDatum(psprintf(UINT64_FORMAT, marker->system_identifier));
	values[5] = Int64GetDatum((int64) marker->timeline);
	values[6] = Int64GetDatum(marker->generation);
	nulls[7] = !marker->has_source;
	if (marker->has_source)
		values[7] = incarnation_datum(&marker->source, TupleDescAttr(desc, 7)->atttypid);
	nulls[8] = marker->way == NULL;
	if (marker->way != NULL)
		values[8] = CStringGetTextDatum(marker->way);
	nulls[9] = XLogRecPtrIsInvalid(marker->witness);
	values[9] = LSNGetDatum(marker->witness);
	nulls[10] = !TransactionIdIsValid(marker->unheld_before);
	nulls[11] = nulls[12] = nulls[10] || marker->held_since == DT_NOEND;
	values[10] = TransactionIdGetDatum(marker->unheld_before);
	values[11] = TimestampTzGetDatum(marker->held_since);
	values[12] = LSNGetDatum(marker->held_from);
	tuple = heap_form_tuple(desc, values, nulls);
	ReleaseTupleDesc(desc);
	return HeapTupleGetDatum(tuple);
}
