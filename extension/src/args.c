/*
 * args.c
 *		Decoding and validating what callers give.
 *
 * All of it, before anything in shared memory is looked at: a call with one bad
 * argument does nothing at all.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"

#include "row.h"

static Datum
arg_get(FunctionCallInfo fcinfo, int argno, const char *what)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", what)));
	return PG_GETARG_DATUM(argno);
}

void
arg_fence(FunctionCallInfo fcinfo, int argno, Fence *result)
{
	static const char *const fields[] = {"scope", "store", "epoch", "owner", "system_identifier", "timeline"};
	static const Oid types[] = {TEXTOID, TEXTOID, INT8OID, TEXTOID, TEXTOID, INT8OID};
	Row			row;
	int64		timeline;

	row_open(&row, arg_get(fcinfo, argno, "fence"), "fence", fields, types, lengthof(fields));
	result->scope = row_text(&row, 0);
	result->store = row_text(&row, 1);
	result->epoch = DatumGetInt64(row_get(&row, 2));
	if (result->epoch < 1)
		row_bad_value("fence", "epoch", "An epoch is 1 or more.");
	result->owner = row_text(&row, 3);
	result->system_identifier = row_uint64(&row, 4);
	timeline = DatumGetInt64(row_get(&row, 5));
	if (timeline < 1 || timeline > PG_UINT32_MAX)
		row_bad_value("fence", "timeline", "A timeline is a number from 1 to 4294967295.");
	result->timeline = (TimeLineID) timeline;
}

int64
arg_int64(FunctionCallInfo fcinfo, int argno, const char *what, int64 min, int64 max)
{
	int64		value = DatumGetInt64(arg_get(fcinfo, argno, what));

	if (value < min || value > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for %s: " INT64_FORMAT, what, value),
				 errdetail("It must be between " INT64_FORMAT " and " INT64_FORMAT ".", min, max)));
	return value;
}

static Datum *
arg_array(FunctionCallInfo fcinfo, int argno, const char *what, int *count)
{
	ArrayType  *array = DatumGetArrayTypeP(arg_get(fcinfo, argno, what));
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum	   *values;
	bool	   *nulls;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("%s must be an array of one dimension, not of %d", what, ARR_NDIM(array))));
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval, &typalign);
	deconstruct_array(array, ARR_ELEMTYPE(array), typlen, typbyval, typalign,
					  &values, &nulls, count);
	for (int i = 0; i < *count; i++)
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("element %d of %s must not be null", i + 1, what)));
	return values;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Slot names inside structs of the given size: valid ones, none twice. */
static void
check_names(const NameData *first, Size stride, int count, const char *what)
{
	const char **names = palloc(sizeof(char *) * (count + 1));

	for (int i = 0; i < count; i++)
	{
		names[i] = (const char *) first + stride * i;
		compat_slot_validate_name(names[i]);
	}
	qsort(names, count, sizeof(char *), compare_names);
	for (int i = 1; i < count; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("%s names the slot \"%s\" twice", what, names[i])));
	pfree(names);
}

/*
 * A mirror gets what its slot has. Without the position a decoder takes what was
 * prepared before it for sent, so it is left out only where the slot may lack it.
 */
static void
two_phase_check(const Change *c)
{
	if (!c->two_phase)
		return;
	if (!COMPAT_HAS_TWO_PHASE)
		row_bad_value("change", "two_phase", "This server's slots cannot decode prepared transactions.");
	if (c->two_phase_at == InvalidXLogRecPtr && !COMPAT_TWO_PHASE_AT_MAY_BE_EMPTY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for change.two_phase_at"),
				 errdetail("A slot of this server that decodes prepared transactions has the position from where on it does."),
				 errhint("Give the slot's two_phase_at as slotkeeper.slots() shows it on the primary; where it shows none, create the slot again.")));
}

static void
decode_change(Datum value, Change *c)
{
	static const char *const fields[] = {"name", "plugin", "database_oid", "two_phase", "two_phase_at",
		"restart_lsn", "confirmed_flush_lsn", "catalog_xmin", "snapshot", "source", "resume", "snapshot_at"};
	static const Oid types[] = {NAMEOID, NAMEOID, OIDOID, BOOLOID, LSNOID,
		LSNOID, LSNOID, XIDOID, BYTEAOID, InvalidOid, TEXTOID, LSNOID};
	Row			row;

	row_open(&row, value, "change", fields, types, lengthof(fields));
	row_name(&row, 0, &c->name);
	row_name(&row, 1, &c->plugin);
	if (NameStr(c->plugin)[0] == '\0')
		row_bad_value("change", "plugin", "A logical slot has an output plugin.");
	c->database = DatumGetObjectId(row_get(&row, 2));
	if (!OidIsValid(c->database))
		row_bad_value("change", "database_oid", "A logical slot belongs to a database.");
	c->two_phase = DatumGetBool(row_get(&row, 3));
	c->two_phase_at = row.nulls[4] ? InvalidXLogRecPtr : DatumGetLSN(row.values[4]);
	two_phase_check(c);
	c->restart_lsn = row_lsn(&row, 5);
	c->confirmed_flush = row_lsn(&row, 6);
	if (c->restart_lsn > c->confirmed_flush)
		row_bad_value("change", "restart_lsn", "It is never after confirmed_flush_lsn.");
	c->catalog_xmin = row_xid(&row, 7);
	c->snapshot = row.nulls[8] ? NULL : DatumGetByteaPP(row.values[8]);
	row_incarnation(&row, 9, &c->source);
	c->resume = row.nulls[10] ? NULL : TextDatumGetCString(row.values[10]);
	c->snapshot_at = row.nulls[11] ? c->restart_lsn : DatumGetLSN(row.values[11]);
	if (!row.nulls[11] && (c->snapshot_at < c->restart_lsn || c->snapshot_at >= c->confirmed_flush))
		row_bad_value("change", "snapshot_at", "It is not before restart_lsn, and before confirmed_flush_lsn.");
	if (strcmp(NameStr(c->name), HOLD_NAME) == 0 || strcmp(NameStr(c->name), WAL_HOLD_NAME) == 0)
		row_bad_value("change", "name", "That name is reserved for slotkeeper's own slots.");
}

Change *
arg_changes(FunctionCallInfo fcinfo, int argno, int *count)
{
	Datum	   *values = arg_array(fcinfo, argno, "change", count);
	Change	   *changes = palloc0(sizeof(Change) * (*count + 1));

	for (int i = 0; i < *count; i++)
		decode_change(values[i], &changes[i]);
	check_names(&changes[0].name, sizeof(Change), *count, "change");
	return changes;
}

Want *
arg_wants(FunctionCallInfo fcinfo, int argno, int *count)
{
	static const char *const fields[] = {"catalog_xmin", "slot_name", "source"};
	static const Oid types[] = {XIDOID, NAMEOID, InvalidOid};
	Datum	   *values = arg_array(fcinfo, argno, "want", count);
	Want	   *wants = palloc0(sizeof(Want) * (*count + 1));
	NameData   *names = palloc0(sizeof(NameData) * (*count + 1));
	int			named = 0;

	for (int i = 0; i < *count; i++)
	{
		Row			row;

		row_open(&row, values[i], "want", fields, types, lengthof(fields));
		wants[i].catalog_xmin = row_xid(&row, 0);
		wants[i].has_slot = !row.nulls[1];
		if (!wants[i].has_slot)
			continue;
		row_name(&row, 1, &wants[i].slot);
		row_incarnation(&row, 2, &wants[i].source);
		names[named++] = wants[i].slot;
	}
	check_names(names, sizeof(NameData), named, "want");
	return wants;
}

Incarnation *
arg_incarnations(FunctionCallInfo fcinfo, int argno, int *count)
{
	static const char *const fields[] = {"incarnation"};
	Datum	   *values = arg_array(fcinfo, argno, "incarnation", count);
	Incarnation *result = palloc0(sizeof(Incarnation) * (*count + 1));
	Row			row = {.what = "mark", .fields = fields};

	for (int i = 0; i < *count; i++)
	{
		row.values[0] = values[i];
		row.nulls[0] = false;
		row_incarnation(&row, 0, &result[i]);
	}
	return result;
}

NameData *
arg_names(FunctionCallInfo fcinfo, int argno, int *count)
{
	Datum	   *values = arg_array(fcinfo, argno, "name", count);
	NameData   *names = palloc0(sizeof(NameData) * (*count + 1));

	for (int i = 0; i < *count; i++)
		namestrcpy(&names[i], NameStr(*DatumGetName(values[i])));
	check_names(names, sizeof(NameData), *count, "name");
	return names;
}
