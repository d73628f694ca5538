/*
 * walk.c
 *		Proves that a decoder starting at restart_lsn is consistent in time.
 *
 * The records come from walread.c, what they mean to a decoder is in phases.c.
 * Here both meet confirmed_flush_lsn, the snapshot file, and the limit of one
 * call.
 */
#include "postgres.h"

#include "access/timeline.h"
#include "utils/memutils.h"

#include "compat.h"
#include "proof.h"
#include "wal.h"
#include "walk.h"
#include "walread.h"

typedef struct Walk
{
	WalkState	state;
	XLogRecPtr	confirmed;
	WalReader	reader;
} Walk;

const char *
proof_way_name(ProofWay way)
{
	switch (way)
	{
		case PROOF_NONE:
		case PROOF_UNFINISHED:
			return NULL;
		case PROOF_FILE:
			return "file";
		case PROOF_NOTHING_RUNNING:
			return "nothing_running";
		case PROOF_PHASES:
			return "phases";
		case PROOF_LATER_FILE:
			return "later_file";
	}
	return NULL;
}

static void
unproven(Proof *proof, char *detail)
{
	proof->way = PROOF_NONE;
	proof->detail = detail;
}

static void
unfinished(Walk *walk, Proof *proof, char *detail)
{
	proof->way = PROOF_UNFINISHED;
	proof->resume = walk_state_text(&walk->state);
	proof->detail = detail;
}

static void
proven(Proof *proof, ProofWay way, XLogRecPtr at)
{
	proof->way = way;
	proof->proven_at = at;
}

/* Reads the next record; where there is none, says so in proof. */
static bool
next_record(Walk *walk, Proof *proof)
{
	char	   *why;

	switch (wal_reader_next(&walk->reader, &why))
	{
		case WAL_READ_RECORD:
			return true;
		case WAL_READ_NOT_YET:
			unfinished(walk, proof, why);
			return false;
		case WAL_READ_FAILED:
			break;
	}
	unproven(proof, why);
	return false;
}

/*
 * What the file at exactly restart_lsn does. True: proof is final, by the file
 * or because a decoder would fail on it.
 */
static bool
settled_by_file(Walk *walk, Proof *proof, SnapshotState file, char *file_why)
{
	WalkState	fresh;

	if (file == SNAPSHOT_ABSENT)
		return false;

	wal_reader_begin(&walk->reader, walk->state.restart);
	if (!next_record(walk, proof))
		return true;
	if (walk->reader.xlog->ReadRecPtr != walk->state.restart ||
		!walk_is_snapshot_point(walk->reader.xlog))
		return false;
	if (file == SNAPSHOT_VALID)
	{
		proven(proof, PROOF_FILE, walk->state.restart);
		return true;
	}

	/* With nothing running a decoder does not even open the file. */
	walk_state_begin(&fresh, walk->state.restart, walk->state.tli);
	if (walk_state_record(&fresh, walk->reader.xlog) == PROOF_NOTHING_RUNNING)
		return false;
	unproven(proof, file_why);
	return true;
}

/* Takes in the record just read. True: proof is final. */
static bool
settled_by_record(Walk *walk, Proof *proof)
{
	XLogRecPtr	lsn = walk->reader.xlog->ReadRecPtr;
	bool		opens_file = walk_state_opens_file(&walk->state, walk->reader.xlog);
	ProofWay	way;
	char	   *why = NULL;

	if (opens_file)
	{
		switch (snapshot_file_state(lsn, &why))
		{
			case SNAPSHOT_ABSENT:
				break;
			case SNAPSHOT_VALID:
				walk_state_file(&walk->state, walk->reader.xlog);
				break;
			case SNAPSHOT_BAD:
				unproven(proof, why);
				return true;
		}
	}
	way = walk_state_record(&walk->state, walk->reader.xlog);
	if (way != PROOF_NONE)
	{
		proven(proof, way, way == PROOF_LATER_FILE ? walk->state.file : lsn);
		return true;
	}

	/* where it ends without hope, `at` is what no file matters after */
	if (opens_file || !walk_state_hopeless(&walk->state))
		walk->state.at = walk->reader.xlog->EndRecPtr;
	else
		walk->state.at = lsn;
	return false;
}

static void
walk_records(Walk *walk, Proof *proof, int64 max_bytes, char *file_why)
{
	XLogRecPtr	begun = walk->state.at;

	wal_reader_begin(&walk->reader, walk->state.at);
	while (walk->state.at < walk->confirmed && !walk_state_hopeless(&walk->state))
	{
		if (walk->state.at - begun >= max_bytes)
		{
			unfinished(walk, proof,
					   psprintf("looked at WAL up to %X/%X so far",
								LSN_FORMAT_ARGS(walk->state.at)));
			return;
		}
		if (!next_record(walk, proof))
			return;
		if (walk->reader.xlog->ReadRecPtr >= walk->confirmed)
			break;
		if (settled_by_record(walk, proof))
			return;
	}

	walk_remember(&walk->state);
	unproven(proof, psprintf("%s, and %s",
							 walk_state_why(&walk->state, walk->confirmed), file_why));
}

/*
 * Where to go on. A state of an older timeline still holds where it ends before
 * the fork; one that holds no more is forgotten, since walking anew is always
 * right.
 */
static void
choose_beginning(Walk *walk, XLogRecPtr restart, const char *resume)
{
	const WalReader *reader = &walk->reader;
	const WalkState *known = resume == NULL ? walk_recall(restart) : NULL;
	XLogRecPtr	valid_to = reader->limit;

	/* A file that came is left to the next walk: this one must come to its end. */
	if (resume != NULL)
	{
		walk_state_parse(&walk->state, resume, restart);
		if (!XLogRecPtrIsInvalid(walk->state.file) &&
			snapshot_file_state(walk->state.file, NULL) != SNAPSHOT_VALID)
			walk_state_begin(&walk->state, restart, reader->tli);
	}
	else if (known != NULL)
		walk->state = *known;
	else
		walk_state_begin(&walk->state, restart, reader->tli);

	if (walk->state.tli != reader->tli)
		valid_to = tliInHistory(walk->state.tli, reader->history)
			? tliSwitchPoint(walk->state.tli, reader->history, NULL) : InvalidXLogRecPtr;
	if (walk->state.at > valid_to)
		walk_state_begin(&walk->state, restart, reader->tli);
	walk->state.tli = reader->tli;
}

static void
walk_from(Walk *walk, Proof *proof, XLogRecPtr restart, const char *resume, int64 max_bytes)
{
	SnapshotState file;
	char	   *file_why = NULL;
	char	   *wal_why;

	wal_reader_open(&walk->reader);
	choose_beginning(walk, restart, resume);
	if (!wal_reader_possible(restart))
	{
		unproven(proof, psprintf("no record can begin at %X/%X", LSN_FORMAT_ARGS(restart)));
		return;
	}

	/* A walk that goes on somewhere, or that the file settles, would not notice. */
	if (restart <= walk->reader.limit && !wal_exists_from(restart, &wal_why))
	{
		unproven(proof, wal_why);
		return;
	}

	file = snapshot_file_state(restart, &file_why);
	if (!settled_by_file(walk, proof, file, file_why))
		walk_records(walk, proof, max_bytes,
					 file_why != NULL ? file_why : "the record there is not one that a snapshot file belongs to");
}

Proof
proof_walk(XLogRecPtr restart, XLogRecPtr confirmed, const char *resume, int64 max_bytes)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(caller, "slotkeeper walk",
												  ALLOCSET_DEFAULT_SIZES);
	Walk		walk = {0};
	Proof		proof = {0};

	walk.confirmed = confirmed;
	walk.reader.fd = -1;

	PG_TRY();
	{
		MemoryContextSwitchTo(context);
		walk_from(&walk, &proof, restart, resume, Max(max_bytes, 1));
		if (proof.resume != NULL)
			proof.resume = MemoryContextStrdup(caller, proof.resume);
		if (proof.detail != NULL)
			proof.detail = MemoryContextStrdup(caller, proof.detail);
	}
	PG_FINALLY();
	{
		wal_reader_close(&walk.reader);
		MemoryContextSwitchTo(caller);
		MemoryContextDelete(context);
	}
	PG_END_TRY();
	return proof;
}
