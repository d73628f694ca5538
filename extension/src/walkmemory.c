/*
 * walkmemory.c
 *		What a backend remembers of walks that proved nothing.
 */
#include "postgres.h"

#include "compat.h"
#include "proof.h"
#include "walk.h"

/*
 * Walks that ended at confirmed_flush_lsn without a proof, so that the next look
 * at the same restart_lsn goes on there, unless a snapshot file has come or gone:
 * a restart_lsn that stands for hours while confirmed_flush_lsn moves must not
 * cost its whole WAL each time. WAL that was replayed or flushed does not change
 * while this backend lives, and the timeline is compared, so an entry is never
 * wrong, only unused.
 */
#define REMEMBERED 64
static WalkState remembered[REMEMBERED];
static int	next_remembered = 0;

/*
 * Whether the snapshot files are still as the walk has met them. One that has
 * gone takes the proof with it, one that has come before it may bring it sooner:
 * other decoders write theirs a moment later, and files are shipped.
 */
static bool
files_stand(const WalkState *state)
{
	XLogRecPtr	before = state->at;

	if (state->barred)
		return true;
	if (!XLogRecPtrIsInvalid(state->file))
	{
		if (snapshot_file_state(state->file, NULL) != SNAPSHOT_VALID)
			return false;
		before = state->file;
	}
	return XLogRecPtrIsInvalid(snapshot_first_between(state->restart, before));
}

void
walk_remember(const WalkState *state)
{
	for (int i = 0; i < REMEMBERED; i++)
	{
		if (remembered[i].restart == state->restart)
		{
			remembered[i] = *state;
			return;
		}
	}
	remembered[next_remembered] = *state;
	next_remembered = (next_remembered + 1) % REMEMBERED;
}

const WalkState *
walk_recall(XLogRecPtr restart)
{
	for (int i = 0; i < REMEMBERED; i++)
		if (remembered[i].restart == restart)
			return files_stand(&remembered[i]) ? &remembered[i] : NULL;
	return NULL;
}
