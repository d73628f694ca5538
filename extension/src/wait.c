/*
 * wait.c
 *		wait_for_change(): waits until something moves that a controller would
 *		want to read again.
 *
 * It is a procedure: only a CALL of its own can give up the snapshot that every
 * statement begins with, and a snapshot held while waiting would hold back vacuum
 * here and, through hot_standby_feedback, on the primary.
 *
 * Nothing of PostgreSQL signals that a slot has moved, so it looks again and
 * again: after milliseconds while things move, more and more rarely when they
 * do not.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "common/int.h"
#include "funcapi.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "slotkeeper.h"
#include "wal.h"

PG_FUNCTION_INFO_V1(slotkeeper_wait_for_change);

/* In milliseconds. A nap is an eighth of the time that nothing has moved for. */
#define SHORTEST_NAP 2
#define LONGEST_NAP 100
#define NAP_SHARE 8

#define LONGEST_TIMEOUT INT64CONST(86400000)

/*
 * What a caller knows: a fingerprint of the slots as it saw them and, where it
 * waits for that too, a position to be replayed. Its text is 1:<fingerprint>,
 * with @<position> after it as pg_lsn writes it on any major.
 */
typedef struct Token
{
	uint64		fingerprint;
	XLogRecPtr	target;			/* Invalid: replay does not matter */
	const char *target_text;	/* "" or @<position>, as it was given */
} Token;

#define TOKEN_MAX 64

static char *
token_text(const Token *token)
{
	return psprintf("1:%08x%08x%s", (uint32) (token->fingerprint >> 32), (uint32) token->fingerprint, token->target_text);
}

static bool
target_parse(Token *token)
{
	const char *text = token->target_text + 1;
	uint32		hi,
				lo;
	char		rest;

	if (strspn(text, "0123456789ABCDEFabcdef/") != strlen(text) ||
		sscanf(text, "%8X/%8X%c", &hi, &lo, &rest) != 2)
		return false;
	token->target = ((uint64) hi) << 32 | lo;
	return !XLogRecPtrIsInvalid(token->target);
}

static bool
token_parse(Token *token, const char *text)
{
	uint32		hi,
				lo;

	if (strlen(text) > TOKEN_MAX || sscanf(text, "1:%8x%8x", &hi, &lo) != 2)
		return false;
	token->fingerprint = ((uint64) hi) << 32 | lo;
	token->target_text = strchr(text, '@');
	if (token->target_text == NULL)
		token->target_text = "";
	else if (!target_parse(token))
		return false;
	/* sscanf is lenient: only what token_text would write is accepted */
	return strcmp(text, token_text(token)) == 0;
}

static void
token_arg(FunctionCallInfo fcinfo, int argno, Token *token)
{
	if (!token_parse(token, text_to_cstring(PG_GETARG_TEXT_PP(argno))))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("malformed token"),
				 errdetail("It is not one that slotkeeper.wait_for_change has returned, with or without @ and a position after it."),
				 errhint("Pass NULL to begin.")));
}

static int64
timeout_arg(FunctionCallInfo fcinfo, int argno)
{
	const Interval *timeout;
	int64		days,
				usecs = -1;

	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("timeout must not be null")));
	timeout = PG_GETARG_INTERVAL_P(argno);
	days = (int64) Max(Min(timeout->day, 10), -10) * USECS_PER_DAY;
	if (timeout->month != 0 ||
		pg_add_s64_overflow(timeout->time, days, &usecs) ||
		usecs < 0 || usecs > LONGEST_TIMEOUT * 1000)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for timeout"),
				 errdetail("It must be between 0 and 1 day.")));
	return (usecs + 999) / 1000;
}

/*
 * One slot's part. Temporary slots, and those in the making, are nobody's
 * mirrors. A physical slot moves with every flush of the standby behind it: of
 * those that are not ours only that they exist and are valid counts.
 */
static uint64
fingerprint_slot(const SlotLook *look, uint64 seed)
{
	const char *name = NameStr(look->data.name);
	struct
	{
		NameData	name;
		XLogRecPtr	restart_lsn;
		XLogRecPtr	confirmed_flush;
		TransactionId catalog_xmin;
		Oid			database;
		uint32		invalidated;
	}			part;

	if (look->data.persistency != RS_PERSISTENT)
		return seed;
	memset(&part, 0, sizeof(part));
	part.name = look->data.name;
	part.database = look->data.database;
	part.invalidated = look->invalidated != NULL;
	if (!LookIsPhysical(look) || strcmp(name, HOLD_NAME) == 0 || strcmp(name, WAL_HOLD_NAME) == 0)
	{
		part.restart_lsn = look->data.restart_lsn;
		part.confirmed_flush = look->data.confirmed_flush;
		part.catalog_xmin = look->data.catalog_xmin;
	}
	return hash_bytes_extended((const unsigned char *) &part, sizeof(part), seed);
}

/*
 * Of this start of the server, its role and timeline, and all slots. Nothing is
 * allocated, and the lock is held for the scan only.
 */
static uint64
fingerprint(XLogRecPtr *reached)
{
	struct
	{
		TimestampTz started;
		TimeLineID	timeline;
		uint32		in_recovery;
	}			node;
	uint64		result;

	memset(&node, 0, sizeof(node));
	node.started = PgStartTime;
	*reached = wal_readable_to(&node.timeline);
	node.in_recovery = RecoveryInProgress();
	result = hash_bytes_extended((const unsigned char *) &node, sizeof(node), 0);

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		SlotLook	look;

		if (!slot->in_use)
			continue;
		look_at(slot, &look);
		result = fingerprint_slot(&look, result);
	}
	LWLockRelease(ReplicationSlotControlLock);
	return result;
}

/*
 * Gives up every snapshot of this statement, as COMMIT in a procedure does
 * (spi.c, _SPI_commit; portalmem.c, PreCommit_Portals). CALL takes a new one
 * before it sends the result (functioncmds.c, ExecuteCallStmt).
 */
static void
give_up_snapshots(FunctionCallInfo fcinfo)
{
	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic || IsSubTransaction())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("slotkeeper.wait_for_change cannot run inside a transaction block or a function"),
				 errdetail("The snapshot there would hold back vacuum for as long as it waits."),
				 errhint("CALL it as a statement of its own.")));

	/* A background worker's C code can CALL without one (SPI_OPT_NONATOMIC). */
	if (ActivePortal == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("slotkeeper.wait_for_change cannot run where there is no portal"),
				 errdetail("It gives up the snapshots of the portal that its statement runs in, and whoever calls it here may hold others."),
				 errhint("CALL it from a client, as a statement of its own.")));

	if (ActivePortal->holdSnapshot != NULL)
	{
		UnregisterSnapshotFromOwner(ActivePortal->holdSnapshot, ActivePortal->resowner);
		ActivePortal->holdSnapshot = NULL;
	}
	ForgetPortalSnapshots();
	InvalidateCatalogSnapshot();
	if (compat_own_xmin() != InvalidTransactionId)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("slotkeeper.wait_for_change cannot run while a snapshot is held"),
				 errdetail("A transaction isolation level above read committed, or an open cursor, holds one."),
				 errhint("CALL it as a statement of its own, at READ COMMITTED.")));
}

/*
 * Sleeps until it is time to look again. False when the caller has something
 * else to do first: the client has sent its next message, or is gone, or the
 * configuration is to be read again, which is done between statements.
 */
static bool
nap(double waited, double left)
{
	int			events = WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH;
	pgsocket	client = PGINVALID_SOCKET;
	double		length = Min(Max(waited / NAP_SHARE, SHORTEST_NAP), LONGEST_NAP);

	if (MyProcPort != NULL)
	{
		client = MyProcPort->sock;
		events |= WL_SOCKET_READABLE;
	}
	events = WaitLatchOrSocket(MyLatch, events, client, (long) ceil(Min(length, left)), PG_WAIT_EXTENSION);
	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return !ConfigReloadPending && !(events & WL_SOCKET_READABLE);
}

/* Waits until *token is behind, and brings it up to date. */
static void
wait_past(Token *token, int64 timeout)
{
	instr_time	begun;

	INSTR_TIME_SET_CURRENT(begun);
	for (;;)
	{
		XLogRecPtr	reached;
		uint64		seen = fingerprint(&reached);
		instr_time	now;
		double		waited;

		if (seen != token->fingerprint || (!XLogRecPtrIsInvalid(token->target) && reached >= token->target))
		{
			token->fingerprint = seen;
			if (reached >= token->target)
				token->target_text = "";
			return;
		}
		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, begun);
		waited = INSTR_TIME_GET_MILLISEC(now);
		if (waited >= timeout || !nap(waited, timeout - waited))
			return;
	}
}

Datum
slotkeeper_wait_for_change(PG_FUNCTION_ARGS)
{
	Token		token = {.target_text = ""};
	int64		timeout = timeout_arg(fcinfo, 1);
	XLogRecPtr	reached;
	TupleDesc	desc;
	Datum		value;
	bool		null = false;

	if (!PG_ARGISNULL(0))
		token_arg(fcinfo, 0, &token);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != 1)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("slotkeeper.wait_for_change is not declared as this library knows it"),
				 errhint("Run ALTER EXTENSION slotkeeper UPDATE.")));
	desc = BlessTupleDesc(desc);

	give_up_snapshots(fcinfo);
	if (PG_ARGISNULL(0))
		token.fingerprint = fingerprint(&reached);
	else
		wait_past(&token, timeout);
	value = CStringGetTextDatum(token_text(&token));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, &value, &null)));
}
