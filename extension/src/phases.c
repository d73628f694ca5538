/*
 * phases.c
 *		How far a decoder that starts at restart_lsn gets, record by record.
 *
 * This follows SnapBuildFindSnapshot in snapbuild.c twice at once: without any
 * snapshot file, and with the first one that is met.
 *
 * Without: what a decoder in FULL lacks are catalog changes made before FULL by
 * transactions that it does not look up in the commit log, which are those not
 * older than the oldest one running at FULL. All their records lie between
 * BUILDING and FULL, so the walk has seen them: each catalog row written leaves
 * a NEW_CID record with the writer's (sub)transaction id. Where the newest of
 * these is older than all that runs at FULL, the catalogs are true from FULL
 * on, since from there the decoder follows every change itself. Else it becomes
 * consistent with a stale snapshot, also where nothing runs, and nothing proves it.
 *
 * With a file at L: from L on the catalogs are the primary's, but the decoder
 * has not seen, or has seen with other catalogs, what the transactions running
 * at L wrote before. They must all have ended before confirmed_flush_lsn: a
 * running-xacts record after L on which the oldest is not older than the next
 * transaction id at L says so. The decoder opens a file at any of the three
 * kinds of record, in any phase before CONSISTENT, except where nothing runs.
 * At a shutdown or an end of recovery nothing runs but prepared transactions,
 * and no next transaction id is needed from the record: that of the following
 * running-xacts record is not older.
 *
 * A file that comes later, between restart_lsn and L, harms no proof: what runs
 * there has ended by then as well. With one exception: a decoder that opens a
 * file at a shutdown or an end of recovery does not learn which prepared
 * transactions are open, and so misses that one of them has changed catalogs
 * when it is committed (at a running-xacts record it does learn it). A commit
 * of a prepared transaction with invalidations after such a record bars any proof.
 */
#include "postgres.h"

#include "access/heapam_xlog.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_control.h"
#include "storage/standby.h"

#include "compat.h"
#include "walk.h"

void
walk_state_begin(WalkState *state, XLogRecPtr restart, TimeLineID tli)
{
	memset(state, 0, sizeof(*state));
	state->restart = restart;
	state->at = restart;
	state->tli = tli;
	state->phase = WALK_START;
	state->next_phase_at = InvalidTransactionId;
}

const xl_running_xacts *
walk_running_xacts(XLogReaderState *record)
{
	if (XLogRecGetRmid(record) != RM_STANDBY_ID ||
		(XLogRecGetInfo(record) & ~XLR_INFO_MASK) != XLOG_RUNNING_XACTS ||
		XLogRecGetDataLen(record) < offsetof(xl_running_xacts, xids))
		return NULL;
	return (const xl_running_xacts *) XLogRecGetData(record);
}

bool
walk_is_snapshot_point(XLogReaderState *record)
{
	uint8		info = XLogRecGetInfo(record) & ~XLR_INFO_MASK;

	if (XLogRecGetRmid(record) == RM_XLOG_ID)
		return info == XLOG_CHECKPOINT_SHUTDOWN || info == XLOG_END_OF_RECOVERY;
	return walk_running_xacts(record) != NULL;
}

/* Nothing runs there, so that a decoder needs no file and opens none. */
static bool
nothing_running(const xl_running_xacts *running)
{
	return running->oldestRunningXid == running->nextXid;
}

static bool
commits_prepared_change(XLogReaderState *record)
{
	xl_xact_parsed_commit commit;

	if (XLogRecGetRmid(record) != RM_XACT_ID ||
		(XLogRecGetInfo(record) & XLOG_XACT_OPMASK) != XLOG_XACT_COMMIT_PREPARED)
		return false;
	ParseCommitRecord(XLogRecGetInfo(record),
					  (xl_xact_commit *) XLogRecGetData(record), &commit);
	return (commit.xinfo & XACT_XINFO_HAS_INVALS) != 0;
}

/* What came before FULL counts; later changes are followed by the decoder. */
static void
note_catalog_change(WalkState *state, XLogReaderState *record)
{
	TransactionId xid = XLogRecGetXid(record);

	if (state->phase >= WALK_FULL || XLogRecGetRmid(record) != RM_HEAP2_ID ||
		(XLogRecGetInfo(record) & XLOG_HEAP_OPMASK) != XLOG_HEAP2_NEW_CID)
		return;
	if (TransactionIdIsNormal(xid) &&
		(!TransactionIdIsValid(state->changed_by) || TransactionIdFollows(xid, state->changed_by)))
		state->changed_by = xid;
}

/* The decoder's own way, as if there were no file. */
static ProofWay
take_phase(WalkState *state, const xl_running_xacts *running)
{
	if (state->phase == WALK_STALE)
		return PROOF_NONE;
	if (nothing_running(running))
	{
		if (!state->lacks_changes)
			return PROOF_NOTHING_RUNNING;
		state->phase = WALK_STALE;
		return PROOF_NONE;
	}
	if (state->phase != WALK_START &&
		!TransactionIdPrecedesOrEquals(state->next_phase_at, running->oldestRunningXid))
		return PROOF_NONE;
	if (state->phase == WALK_FULL && !state->lacks_changes)
		return PROOF_PHASES;

	state->phase++;
	state->next_phase_at = running->nextXid;
	if (state->phase == WALK_FULL)
		state->lacks_changes = TransactionIdIsValid(state->changed_by) &&
			!TransactionIdPrecedes(state->changed_by, running->oldestRunningXid);
	return PROOF_NONE;
}

/* Whether what ran at the file has ended. */
static ProofWay
take_file(WalkState *state, const xl_running_xacts *running)
{
	if (XLogRecPtrIsInvalid(state->file))
		return PROOF_NONE;
	if (!TransactionIdIsValid(state->file_next))
		state->file_next = running->nextXid;
	return TransactionIdPrecedesOrEquals(state->file_next, running->oldestRunningXid)
		? PROOF_LATER_FILE : PROOF_NONE;
}

bool
walk_state_opens_file(const WalkState *state, XLogReaderState *record)
{
	const xl_running_xacts *running = walk_running_xacts(record);

	return XLogRecPtrIsInvalid(state->file) && state->phase != WALK_STALE &&
		walk_is_snapshot_point(record) && (running == NULL || !nothing_running(running));
}

void
walk_state_file(WalkState *state, XLogReaderState *record)
{
	const xl_running_xacts *running = walk_running_xacts(record);

	state->file = record->ReadRecPtr;
	state->file_next = running != NULL ? running->nextXid : InvalidTransactionId;
}

ProofWay
walk_state_record(WalkState *state, XLogReaderState *record)
{
	const xl_running_xacts *running = walk_running_xacts(record);
	ProofWay	way;

	if (running == NULL)
	{
		note_catalog_change(state, record);
		state->restarted |= walk_is_snapshot_point(record);
		state->barred |= state->restarted && commits_prepared_change(record);
		return PROOF_NONE;
	}
	if (state->barred)
		return PROOF_NONE;
	way = take_phase(state, running);
	return way != PROOF_NONE ? way : take_file(state, running);
}

bool
walk_state_hopeless(const WalkState *state)
{
	return state->barred ||
		(state->phase == WALK_STALE && XLogRecPtrIsInvalid(state->file));
}

char *
walk_state_why(const WalkState *state, XLogRecPtr confirmed)
{
	if (state->barred)
		return psprintf("a prepared transaction that changed catalogs was committed after restart_lsn %X/%X and a restart of the server",
						LSN_FORMAT_ARGS(state->restart));
	if (!XLogRecPtrIsInvalid(state->file))
		return psprintf("transactions that ran at the snapshot file of %X/%X were still running at every record after it up to confirmed_flush_lsn %X/%X",
						LSN_FORMAT_ARGS(state->file), LSN_FORMAT_ARGS(confirmed));
	if (state->phase == WALK_STALE)
		return psprintf("catalogs changed after restart_lsn %X/%X and before a decoder without a snapshot file could become consistent",
						LSN_FORMAT_ARGS(state->restart));
	if (state->phase == WALK_START)
		return psprintf("no record between restart_lsn %X/%X and confirmed_flush_lsn %X/%X says which transactions were running",
						LSN_FORMAT_ARGS(state->restart), LSN_FORMAT_ARGS(confirmed));
	return psprintf("transactions older than %u were still running at every record from restart_lsn %X/%X up to confirmed_flush_lsn %X/%X",
					state->next_phase_at,
					LSN_FORMAT_ARGS(state->restart), LSN_FORMAT_ARGS(confirmed));
}
