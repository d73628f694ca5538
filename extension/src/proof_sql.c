/*
 * proof_sql.c
 *		slotkeeper.consistent_point() and slotkeeper.snapshot().
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"

#include "compat.h"
#include "proof.h"

PG_FUNCTION_INFO_V1(slotkeeper_consistent_point);
PG_FUNCTION_INFO_V1(slotkeeper_snapshot);

static XLogRecPtr
lsn_argument(FunctionCallInfo fcinfo, int n, const char *name)
{
	XLogRecPtr	lsn = PG_ARGISNULL(n) ? InvalidXLogRecPtr : PG_GETARG_LSN(n);

	if (XLogRecPtrIsInvalid(lsn))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is not a position in WAL", name),
				 errdetail("It is %s.", PG_ARGISNULL(n) ? "NULL" : "0/0"),
				 errhint("Pass a position that pg_replication_slots shows for the slot.")));
	return lsn;
}

static int64
max_bytes_argument(FunctionCallInfo fcinfo, int n)
{
	int64		max_bytes = PG_ARGISNULL(n) ? 0 : PG_GETARG_INT64(n);

	if (max_bytes <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_bytes must be greater than zero"),
				 errdetail("It is %s.", PG_ARGISNULL(n) ? "NULL" : psprintf(INT64_FORMAT, max_bytes)),
				 errhint("It bounds the WAL that one call reads; leave it out for 64 MB.")));
	return max_bytes;
}

static Datum
proof_row(FunctionCallInfo fcinfo, const Proof *proof)
{
	const char *way = proof_way_name(proof->way);
	TupleDesc	desc;
	Datum		values[3] = {0};
	bool		nulls[3];

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != 3)
		elog(ERROR, "slotkeeper_consistent_point must return (resume text, way text, proven_at pg_lsn)");

	nulls[0] = proof->resume == NULL;
	if (!nulls[0])
		values[0] = CStringGetTextDatum(proof->resume);
	nulls[1] = nulls[2] = way == NULL;
	if (way != NULL)
	{
		values[1] = CStringGetTextDatum(way);
		values[2] = LSNGetDatum(proof->proven_at);
	}
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

/*
 * consistent_point(restart_lsn, confirmed_flush_lsn, resume, max_bytes): the way
 * by which decoding is proven consistent, and where. No way and a resume text:
 * not finished. Neither: not proven; the reason is sent as a DEBUG1 message.
 */
Datum
slotkeeper_consistent_point(PG_FUNCTION_ARGS)
{
	XLogRecPtr	restart = lsn_argument(fcinfo, 0, "restart_lsn");
	XLogRecPtr	confirmed = lsn_argument(fcinfo, 1, "confirmed_flush_lsn");
	char	   *resume = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));
	int64		max_bytes = max_bytes_argument(fcinfo, 3);
	Proof		proof;

	if (restart > confirmed)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("restart_lsn is after confirmed_flush_lsn"),
				 errdetail("restart_lsn is %X/%X, confirmed_flush_lsn is %X/%X.",
						   LSN_FORMAT_ARGS(restart), LSN_FORMAT_ARGS(confirmed)),
				 errhint("Take both from one row of pg_replication_slots.")));

	proof = proof_walk(restart, confirmed, resume, max_bytes);
	if (proof.detail != NULL)
		ereport(DEBUG1, (errmsg_internal("not proven: %s", proof.detail)));
	return proof_row(fcinfo, &proof);
}

/* snapshot(at): the bytes of the snapshot file at that position, or NULL. */
Datum
slotkeeper_snapshot(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = snapshot_file_read(lsn_argument(fcinfo, 0, "at"));

	if (bytes == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(bytes);
}
