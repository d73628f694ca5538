/*
 * guard.c
 *		One slot's error must not end the batch.
 *
 * A subtransaction cleans up after an error as core does (LWLocks, files,
 * buffers), but it does not know of MyReplicationSlot: hand.c does.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "slotkeeper.h"

bool
guarded(GuardedWork work, void *arg, Failure *failure)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool ok = false;

	memset(failure, 0, sizeof(*failure));
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(arg);
		ReleaseCurrentSubTransaction();
		ok = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		failure->edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		failure->sqlerrcode = failure->edata->sqlerrcode;
		failure->message = failure->edata->message ? failure->edata->message : "an error without a message";
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return ok;
}

void
failure_rethrow_if_cancel(const Failure *failure)
{
	int			category = ERRCODE_TO_CATEGORY(failure->sqlerrcode);

	/* query_canceled, admin_shutdown and the like; recovery conflicts */
	if (category == ERRCODE_OPERATOR_INTERVENTION || category == ERRCODE_TRANSACTION_ROLLBACK)
		ReThrowError(failure->edata);
}
