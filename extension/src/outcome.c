/*
 * outcome.c
 *		The rows that come back: one per slot, whatever became of it.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/tuplestore.h"

#include "row.h"

#define OUTCOME_COLUMNS 10

void
outcomes_begin(FunctionCallInfo fcinfo)
{
	static const Oid types[OUTCOME_COLUMNS] = {NAMEOID, TEXTOID, LSNOID, LSNOID, XIDOID,
		TEXTOID, LSNOID, TEXTOID, TEXTOID, TEXTOID};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	compat_materialize(fcinfo);
	row_type_check(rsinfo->setDesc, "outcome", types, OUTCOME_COLUMNS);
}

void
outcome_init(Outcome *outcome, const char *name)
{
	memset(outcome, 0, sizeof(*outcome));
	namestrcpy(&outcome->name, name);
}

static char *format(const char *fmt, va_list args) pg_attribute_printf(1, 0);

static char *
format(const char *fmt, va_list args)
{
	size_t		size = 256;

	for (;;)
	{
		char	   *result = palloc(size);
		va_list		copy;
		size_t		needed;

		va_copy(copy, args);
		needed = pvsnprintf(result, size, fmt, copy);
		va_end(copy);
		if (needed < size)
			return result;
		pfree(result);
		size = needed;
	}
}

void
outcome_is(Outcome *outcome, const char *code, const char *fmt,...)
{
	va_list		args;

	outcome->code = code;
	outcome->detail = NULL;
	outcome->hint = NULL;
	if (fmt == NULL)
		return;
	va_start(args, fmt);
	outcome->detail = format(fmt, args);
	va_end(args);
}

void
outcome_hint(Outcome *outcome, const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	outcome->hint = format(fmt, args);
	va_end(args);
}

void
outcome_position(Outcome *outcome, const ReplicationSlotPersistentData *data)
{
	outcome->restart_lsn = data->restart_lsn;
	outcome->confirmed_flush = data->confirmed_flush;
	outcome->catalog_xmin = data->catalog_xmin;
}

void
outcome_failed(Outcome *outcome, const Failure *failure)
{
	const char *code = "retry";

	if (failure->sqlerrcode == ERRCODE_OBJECT_IN_USE)
		code = "in_use";
	else if (failure->sqlerrcode == ERRCODE_CONFIGURATION_LIMIT_EXCEEDED)
		code = "no_free_slot";
	else if (failure->sqlerrcode == ERRCODE_DISK_FULL || failure->sqlerrcode == ERRCODE_IO_ERROR)
		code = "save_failed";
	outcome_is(outcome, code, "%s", failure->message);
	outcome->way = NULL;
	outcome->proven_at = InvalidXLogRecPtr;
}

static void
put_text(Datum *values, bool *nulls, int i, const char *text)
{
	nulls[i] = text == NULL;
	if (text != NULL)
		values[i] = CStringGetTextDatum(text);
}

static void
put_lsn(Datum *values, bool *nulls, int i, XLogRecPtr lsn)
{
	nulls[i] = lsn == InvalidXLogRecPtr;
	values[i] = LSNGetDatum(lsn);
}

void
outcome_put(FunctionCallInfo fcinfo, const Outcome *outcome)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[OUTCOME_COLUMNS] = {0};
	bool		nulls[OUTCOME_COLUMNS] = {false};

	values[0] = NameGetDatum(&outcome->name);
	put_text(values, nulls, 1, outcome->code);
	put_lsn(values, nulls, 2, outcome->restart_lsn);
	put_lsn(values, nulls, 3, outcome->confirmed_flush);
	nulls[4] = !TransactionIdIsValid(outcome->catalog_xmin);
	values[4] = TransactionIdGetDatum(outcome->catalog_xmin);
	put_text(values, nulls, 5, outcome->way);
	put_lsn(values, nulls, 6, outcome->proven_at);
	put_text(values, nulls, 7, outcome->resume);
	put_text(values, nulls, 8, outcome->detail);
	put_text(values, nulls, 9, outcome->hint);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

void
outcomes_refuse(FunctionCallInfo fcinfo, const Refusal *refusal,
				const NameData *names, Size stride, int count)
{
	for (int i = 0; i < count; i++)
	{
		Outcome		outcome;

		outcome_init(&outcome, (const char *) names + stride * i);
		outcome.code = refusal->code;
		outcome.detail = refusal->detail;
		outcome.hint = refusal->hint;
		outcome_put(fcinfo, &outcome);
	}
}
