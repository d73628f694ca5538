/*
 * noportal.c
 *		For a test: a background worker that calls slotkeeper.wait_for_change as
 *		CALL does, but in no portal, which only C code can. Preloaded into a server
 *		whose database postgres has the extension; what comes of it is in the log.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "postmaster/bgworker.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

PG_MODULE_MAGIC;

void		_PG_init(void);
PGDLLEXPORT void noportal_main(Datum arg);

void
noportal_main(Datum arg)
{
	CallContext *context;
	Interval	none = {0};
	Datum		procedure;
	FmgrInfo	function;

	LOCAL_FCINFO(fcinfo, 2);

	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection("postgres", NULL, 0);
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	procedure = DirectFunctionCall1(regprocedurein, CStringGetDatum("slotkeeper.wait_for_change(text, interval)"));
	fmgr_info(DatumGetObjectId(procedure), &function);
	context = makeNode(CallContext);
	context->atomic = false;
	InitFunctionCallInfoData(*fcinfo, &function, 2, InvalidOid, (Node *) context, NULL);
	fcinfo->args[0].isnull = true;
	fcinfo->args[1].value = IntervalPGetDatum(&none);
	fcinfo->args[1].isnull = false;
	FunctionCallInvoke(fcinfo);
	elog(LOG, "noportal: it came back");
}

void
_PG_init(void)
{
	BackgroundWorker worker = {
		.bgw_name = "noportal",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_function_name = "noportal_main",
	};

	strcpy(worker.bgw_library_name, "noportal");
	RegisterBackgroundWorker(&worker);
}
