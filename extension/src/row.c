/*
 * row.c
 *		A composite argument, taken apart and looked at column by column.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/typcache.h"

#include "row.h"

#define TEXT_MAX 255

void
row_bad_value(const char *what, const char *field, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for %s.%s", what, field),
			 errdetail_internal("%s", detail)));
}

void
row_type_check(TupleDesc desc, const char *what, const Oid *types, int n)
{
	bool		fits = desc->natts == n;

	for (int i = 0; fits && i < n; i++)
	{
		Form_pg_attribute column = TupleDescAttr(desc, i);

		fits = !column->attisdropped &&
			(types[i] == InvalidOid ? type_is_rowtype(column->atttypid) : column->atttypid == types[i]);
	}
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("type slotkeeper.%s is not as this library knows it", what),
				 errhint("Drop the extension slotkeeper and create it again.")));
}

void
row_open(Row *row, Datum composite, const char *what, const char *const *fields,
		 const Oid *types, int n)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(composite);
	TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
											  HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple;

	row_type_check(desc, what, types, n);
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = header;
	row->what = what;
	row->fields = fields;
	heap_deform_tuple(&tuple, desc, row->values, row->nulls);
	ReleaseTupleDesc(desc);
}

Datum
row_get(const Row *row, int i)
{
	if (row->nulls[i])
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s.%s must not be null", row->what, row->fields[i])));
	return row->values[i];
}

/*
 * Printable ASCII: it goes into files of one line per value, which sessions of
 * databases with other encodings read.
 */
char *
row_text(const Row *row, int i)
{
	char	   *value = TextDatumGetCString(row_get(row, i));

	if (*value == '\0')
		row_bad_value(row->what, row->fields[i], "It must not be empty.");
	if (strlen(value) > TEXT_MAX)
		row_bad_value(row->what, row->fields[i], "It must not be longer than 255 bytes.");
	for (const char *p = value; *p != '\0'; p++)
		if (*p < 0x20 || *p >= 0x7f)
			row_bad_value(row->what, row->fields[i], "It must hold printable ASCII characters only.");
	return value;
}

uint64
row_uint64(const Row *row, int i)
{
	char	   *value = TextDatumGetCString(row_get(row, i));
	size_t		len = strlen(value);
	uint64		number;

	errno = 0;
	number = strtou64(value, NULL, 10);
	if (len == 0 || len > 20 || strspn(value, "0123456789") != len || errno != 0)
		row_bad_value(row->what, row->fields[i], "It must be a decimal number of 64 bits.");
	return number;
}

TransactionId
row_xid(const Row *row, int i)
{
	TransactionId xid = DatumGetTransactionId(row_get(row, i));

	if (!TransactionIdIsNormal(xid))
		row_bad_value(row->what, row->fields[i],
				  "0, 1 and 2 are special transaction ids and never a catalog_xmin.");
	return xid;
}

XLogRecPtr
row_lsn(const Row *row, int i)
{
	XLogRecPtr	lsn = DatumGetLSN(row_get(row, i));

	if (lsn == InvalidXLogRecPtr)
		row_bad_value(row->what, row->fields[i], "0/0 is never a position.");
	return lsn;
}

void
row_name(const Row *row, int i, NameData *result)
{
	namestrcpy(result, NameStr(*DatumGetName(row_get(row, i))));
}

void
row_incarnation(const Row *parent, int i, Incarnation *result)
{
	static const char *const fields[] = {"inode", "birth"};
	static const Oid types[] = {TEXTOID, TIMESTAMPTZOID};
	Row			row;

	row_open(&row, row_get(parent, i), "incarnation", fields, types, lengthof(fields));
	result->inode = row_uint64(&row, 0);
	result->has_birth = !row.nulls[1];
	result->birth = result->has_birth ? DatumGetTimestampTz(row.values[1]) : 0;
}
