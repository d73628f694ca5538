/*
 * phases.c
 *		How far a decoder without a snapshot file gets, record by record.
 *
 * This follows SnapBuildFindSnapshot in snapbuild.c, with three differences, all
 * on the safe side. Nothing running at a record counts only before FULL: from
 * FULL on the decoder holds a catalog snapshot that it does not make anew there,
 * and would go on with catalogs from before restart_lsn. The phases count only
 * where no catalog changed since restart_lsn, for the same reason. And snapshot
 * files after restart_lsn are not looked for: a decoder that finds one becomes
 * consistent earlier, and misses the beginnings of the transactions that run
 * there; whatever is proven here, these have all ended before it.
 */
#include "postgres.h"

#include "access/heapam_xlog.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_control.h"
#include "storage/standby.h"

#include "compat.h"
#include "walk.h"
#include "walread.h"

static const char *const phase_names[] = {"start", "building", "full"};

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

static const xl_running_xacts *
running_xacts(XLogReaderState *record)
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
	return running_xacts(record) != NULL;
}

/*
 * A NEW_CID record says that a transaction is changing a catalog; invalidations
 * in a commit record say that it may have, also before restart_lsn.
 */
static bool
changes_catalog(XLogReaderState *record)
{
	uint8		info = XLogRecGetInfo(record);
	xl_xact_parsed_commit commit;

	if (XLogRecGetRmid(record) == RM_HEAP2_ID)
		return (info & XLOG_HEAP_OPMASK) == XLOG_HEAP2_NEW_CID;
	if (XLogRecGetRmid(record) != RM_XACT_ID)
		return false;

	info &= XLOG_XACT_OPMASK;
	if (info != XLOG_XACT_COMMIT && info != XLOG_XACT_COMMIT_PREPARED)
		return false;
	ParseCommitRecord(XLogRecGetInfo(record),
					  (xl_xact_commit *) XLogRecGetData(record), &commit);
	return (commit.xinfo & XACT_XINFO_HAS_INVALS) != 0;
}

static ProofWay
take_running_xacts(WalkState *state, const xl_running_xacts *running)
{
	bool		passed;

	if (running->oldestRunningXid == running->nextXid && state->phase < WALK_FULL)
		return PROOF_NOTHING_RUNNING;

	passed = state->phase == WALK_START ||
		TransactionIdPrecedesOrEquals(state->next_phase_at, running->oldestRunningXid);
	if (!passed)
		return PROOF_NONE;
	if (state->phase == WALK_FULL)
		return state->catalog_changed ? PROOF_NONE : PROOF_PHASES;

	state->phase++;
	state->next_phase_at = running->nextXid;
	return PROOF_NONE;
}

ProofWay
walk_state_record(WalkState *state, XLogReaderState *record)
{
	const xl_running_xacts *running = running_xacts(record);

	if (running != NULL)
		return take_running_xacts(state, running);
	if (!state->catalog_changed)
		state->catalog_changed = changes_catalog(record);
	return PROOF_NONE;
}

bool
walk_state_hopeless(const WalkState *state)
{
	return state->phase == WALK_FULL && state->catalog_changed;
}

char *
walk_state_why(const WalkState *state, XLogRecPtr confirmed)
{
	if (walk_state_hopeless(state))
		return psprintf("catalogs changed after restart_lsn %X/%X and before a decoder without a snapshot file could become consistent",
						LSN_FORMAT_ARGS(state->restart));
	if (state->phase == WALK_START)
		return psprintf("no record between restart_lsn %X/%X and confirmed_flush_lsn %X/%X says which transactions were running",
						LSN_FORMAT_ARGS(state->restart), LSN_FORMAT_ARGS(confirmed));
	return psprintf("transactions older than %u were still running at every record from restart_lsn %X/%X up to confirmed_flush_lsn %X/%X",
					state->next_phase_at,
					LSN_FORMAT_ARGS(state->restart), LSN_FORMAT_ARGS(confirmed));
}

char *
walk_state_text(const WalkState *state)
{
	return psprintf("1 restart=%X/%X timeline=%u at=%X/%X phase=%s next=%u catalog=%c",
					LSN_FORMAT_ARGS(state->restart), state->tli,
					LSN_FORMAT_ARGS(state->at), phase_names[state->phase],
					state->next_phase_at, state->catalog_changed ? 't' : 'f');
}

/* Whether a walk can be in this state at all. */
static bool
state_possible(const WalkState *state)
{
	return state->tli > 0 &&
		!XLogRecPtrIsInvalid(state->restart) &&
		state->at >= state->restart &&
		wal_reader_possible(state->at) &&
		(state->phase == WALK_START
		 ? state->next_phase_at == InvalidTransactionId
		 : TransactionIdIsNormal(state->next_phase_at));
}

static bool
parse(WalkState *state, const char *text)
{
	uint32		restart_hi,
				restart_lo,
				at_hi,
				at_lo;
	char		phase[16];
	char		catalog;

	if (strlen(text) > WALK_TEXT_MAX ||
		sscanf(text, "1 restart=%X/%X timeline=%u at=%X/%X phase=%15s next=%u catalog=%c",
			   &restart_hi, &restart_lo, &state->tli, &at_hi, &at_lo,
			   phase, &state->next_phase_at, &catalog) != 8)
		return false;

	state->restart = ((uint64) restart_hi) << 32 | restart_lo;
	state->at = ((uint64) at_hi) << 32 | at_lo;
	state->catalog_changed = catalog == 't';
	state->phase = WALK_START;
	for (int i = 0; i < lengthof(phase_names); i++)
		if (strcmp(phase, phase_names[i]) == 0)
			state->phase = i;

	/* sscanf is lenient: only what this file itself would write is accepted */
	return strcmp(text, walk_state_text(state)) == 0 && state_possible(state);
}

void
walk_state_parse(WalkState *state, const char *text, XLogRecPtr restart)
{
	if (!parse(state, text))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("malformed resume text"),
				 errdetail("It is not one that an unfinished walk over the WAL has returned."),
				 errhint("Pass NULL to begin at restart_lsn.")));
	if (state->restart != restart)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("resume text belongs to another restart_lsn"),
				 errdetail("It is of a walk from %X/%X, not from %X/%X.",
						   LSN_FORMAT_ARGS(state->restart), LSN_FORMAT_ARGS(restart)),
				 errhint("Pass NULL to begin at restart_lsn.")));
}
