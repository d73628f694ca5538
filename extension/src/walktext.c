/*
 * walktext.c
 *		The text form of what a walk knows, with which a later call goes on.
 */
#include "postgres.h"

#include "access/transam.h"

#include "compat.h"
#include "walk.h"
#include "walread.h"

static const char *const phase_names[] = {"start", "building", "full", "stale"};

static char
flag(bool value)
{
	return value ? 't' : 'f';
}

char *
walk_state_text(const WalkState *state)
{
	return psprintf("2 restart=%X/%X timeline=%u at=%X/%X phase=%s next=%u changed=%u lacks=%c file=%X/%X file_next=%u restarted=%c barred=%c",
					LSN_FORMAT_ARGS(state->restart), state->tli,
					LSN_FORMAT_ARGS(state->at), phase_names[state->phase],
					state->next_phase_at, state->changed_by, flag(state->lacks_changes),
					LSN_FORMAT_ARGS(state->file), state->file_next,
					flag(state->restarted), flag(state->barred));
}

static bool
xid_possible(TransactionId xid)
{
	return !TransactionIdIsValid(xid) || TransactionIdIsNormal(xid);
}

static bool
file_possible(const WalkState *state)
{
	if (XLogRecPtrIsInvalid(state->file))
		return !TransactionIdIsValid(state->file_next);
	return state->file >= state->restart && state->file < state->at &&
		wal_reader_possible(state->file) && xid_possible(state->file_next) &&
		(TransactionIdIsValid(state->file_next) || state->restarted);
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
		 : TransactionIdIsNormal(state->next_phase_at)) &&
		xid_possible(state->changed_by) &&
		(state->lacks_changes
		 ? state->phase >= WALK_FULL && TransactionIdIsValid(state->changed_by)
		 : state->phase != WALK_STALE) &&
		file_possible(state) &&
		(state->restarted || !state->barred);
}

static XLogRecPtr
lsn_of(uint32 hi, uint32 lo)
{
	return ((uint64) hi) << 32 | lo;
}

static bool
parse(WalkState *state, const char *text)
{
	uint32		restart[2],
				at[2],
				file[2];
	char		phase[16];
	char		lacks,
				restarted,
				barred;

	if (strlen(text) > WALK_TEXT_MAX ||
		sscanf(text, "2 restart=%X/%X timeline=%u at=%X/%X phase=%15s next=%u changed=%u lacks=%c file=%X/%X file_next=%u restarted=%c barred=%c",
			   &restart[0], &restart[1], &state->tli, &at[0], &at[1], phase,
			   &state->next_phase_at, &state->changed_by, &lacks,
			   &file[0], &file[1], &state->file_next, &restarted, &barred) != 14)
		return false;

	state->restart = lsn_of(restart[0], restart[1]);
	state->at = lsn_of(at[0], at[1]);
	state->file = lsn_of(file[0], file[1]);
	state->lacks_changes = lacks == 't';
	state->restarted = restarted == 't';
	state->barred = barred == 't';
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
