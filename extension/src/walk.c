/*
 * walk.c
 *		Proves that a decoder starting at restart_lsn is consistent in time.
 *
 * The walk reads this server's own WAL with a reader of its own. Core's page
 * callback cannot be used: it waits for WAL that is not there yet, and
 * confirmed_flush_lsn may lie inside a record. Ours ends the walk instead.
 */
#include "postgres.h"

#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"

#include "compat.h"
#include "proof.h"
#include "wal.h"
#include "walk.h"

typedef struct Walk
{
	WalkState	state;
	XLogRecPtr	confirmed;
	XLogReaderState *reader;

	/* read_page() */
	XLogRecPtr	limit;			/* never read beyond */
	List	   *history;		/* of the timeline that limit is on */
	int			fd;				/* open segment, or -1 */
	XLogSegNo	segno;
	TimeLineID	segment_tli;
	bool		beyond_limit;	/* why the last read failed */
	char	   *missing;		/* likewise */
} Walk;

/*
 * Walks that ended at confirmed_flush_lsn without a proof, so that the next look
 * at the same restart_lsn goes on there: a restart_lsn that stands for hours
 * while confirmed_flush_lsn moves must not cost its whole WAL each time. WAL
 * that was replayed or flushed does not change while this backend lives, and the
 * timeline is compared, so an entry is never wrong, only unused.
 */
#define REMEMBERED 64
static WalkState remembered[REMEMBERED];
static int	next_remembered = 0;

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
	}
	return NULL;
}

static void
remember(const WalkState *state)
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

static const WalkState *
recall(XLogRecPtr restart)
{
	for (int i = 0; i < REMEMBERED; i++)
		if (remembered[i].restart == restart)
			return &remembered[i];
	return NULL;
}

static void
close_segment(Walk *walk)
{
	if (walk->fd >= 0)
		CloseTransientFile(walk->fd);
	walk->fd = -1;
}

/*
 * XLogReader's page callback: never waits, never reads beyond the limit, never
 * raises an error for WAL that is not there.
 */
static int
read_page(XLogReaderState *reader, XLogRecPtr page, int wanted,
		  XLogRecPtr record, char *buffer)
{
	Walk	   *walk = reader->private_data;
	int			available;
	XLogSegNo	segno;

	CHECK_FOR_INTERRUPTS();

	/* The reader takes a page with nothing but its header for a failure. */
	if (page + Max(wanted, SizeOfXLogShortPHD + 1) > walk->limit)
	{
		walk->beyond_limit = true;
		return -1;
	}
	available = Min(walk->limit - page, XLOG_BLCKSZ);

	XLByteToSeg(page, segno, wal_segment_size);
	if (walk->fd < 0 || walk->segno != segno)
	{
		close_segment(walk);
		walk->fd = wal_open_segment(segno, walk->history, &walk->segment_tli,
									&walk->missing);
		if (walk->fd < 0)
			return -1;
		walk->segno = segno;
	}
	reader->seg.ws_tli = walk->segment_tli;

	/* What lies behind the limit may be of a recycled segment, or half written. */
	memset(buffer + available, 0, XLOG_BLCKSZ - available);
	if (pg_pread(walk->fd, buffer, available,
				 XLogSegmentOffset(page, wal_segment_size)) != available)
	{
		walk->missing = psprintf("WAL at %X/%X cannot be read from its segment",
								 LSN_FORMAT_ARGS(page));
		return -1;
	}
	return available;
}

/* A position at a page's very start means the record after the page's header. */
static void
begin_read(Walk *walk, XLogRecPtr at)
{
	if (XLogSegmentOffset(at, wal_segment_size) == 0)
		at += SizeOfXLogLongPHD;
	else if (at % XLOG_BLCKSZ == 0)
		at += SizeOfXLogShortPHD;
	XLogBeginRead(walk->reader, at);
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
	char	   *message = NULL;

	CHECK_FOR_INTERRUPTS();
	walk->beyond_limit = false;
	walk->missing = NULL;
	if (XLogReadRecord(walk->reader, &message) != NULL)
		return true;

	if (walk->beyond_limit)
		unfinished(walk, proof,
				   psprintf("the record at %X/%X needs WAL beyond %X/%X, which is as far as this server has it",
							LSN_FORMAT_ARGS(walk->reader->EndRecPtr), LSN_FORMAT_ARGS(walk->limit)));
	else if (walk->missing != NULL)
		unproven(proof, walk->missing);
	else
		unproven(proof,
				 psprintf("there is no valid record at %X/%X: %s",
						  LSN_FORMAT_ARGS(walk->reader->EndRecPtr),
						  message != NULL ? message : "WAL ends there"));
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

	begin_read(walk, walk->state.restart);
	if (!next_record(walk, proof))
		return true;
	if (walk->reader->ReadRecPtr != walk->state.restart ||
		!walk_is_snapshot_point(walk->reader))
		return false;
	if (file == SNAPSHOT_VALID)
	{
		proven(proof, PROOF_FILE, walk->state.restart);
		return true;
	}

	/* With nothing running a decoder does not even open the file. */
	walk_state_begin(&fresh, walk->state.restart, walk->state.tli);
	if (walk_state_record(&fresh, walk->reader) == PROOF_NOTHING_RUNNING)
		return false;
	unproven(proof, file_why);
	return true;
}

/* Takes in the record just read. True: proof is final. */
static bool
settled_by_record(Walk *walk, Proof *proof)
{
	XLogRecPtr	lsn = walk->reader->ReadRecPtr;
	ProofWay	way;

	way = walk_state_record(&walk->state, walk->reader);
	if (way != PROOF_NONE)
	{
		proven(proof, way, lsn);
		return true;
	}

	/* A decoder in any of our phases opens a file that it meets, and stops at a bad one. */
	if (walk_is_snapshot_point(walk->reader) &&
		snapshot_file_state(lsn, &proof->detail) == SNAPSHOT_BAD)
	{
		proof->way = PROOF_NONE;
		return true;
	}
	proof->detail = NULL;
	walk->state.at = walk->reader->EndRecPtr;
	return false;
}

static void
walk_records(Walk *walk, Proof *proof, int64 max_bytes, char *file_why)
{
	XLogRecPtr	begun = walk->state.at;

	begin_read(walk, walk->state.at);
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
		if (walk->reader->ReadRecPtr >= walk->confirmed)
			break;
		if (settled_by_record(walk, proof))
			return;
	}

	remember(&walk->state);
	unproven(proof, psprintf("%s, and %s",
							 walk_state_why(&walk->state, walk->confirmed), file_why));
}

/*
 * Where to go on. A state of an older timeline still holds where it ends before
 * the fork; one that holds no more is forgotten, since walking anew is always
 * right.
 */
static void
choose_beginning(Walk *walk, XLogRecPtr restart, TimeLineID tli, const char *resume)
{
	const WalkState *known = recall(restart);
	XLogRecPtr	valid_to = walk->limit;

	if (resume != NULL)
		walk_state_parse(&walk->state, resume, restart);
	else if (known != NULL)
		walk->state = *known;
	else
		walk_state_begin(&walk->state, restart, tli);

	if (walk->state.tli != tli)
		valid_to = tliInHistory(walk->state.tli, walk->history)
			? tliSwitchPoint(walk->state.tli, walk->history, NULL) : InvalidXLogRecPtr;
	if (walk->state.at > valid_to)
		walk_state_begin(&walk->state, restart, tli);
	walk->state.tli = tli;
}

static void
walk_from(Walk *walk, Proof *proof, XLogRecPtr restart, const char *resume, int64 max_bytes)
{
	uint32		offset = restart % XLOG_BLCKSZ;
	TimeLineID	tli;
	SnapshotState file;
	char	   *file_why = NULL;

	walk->limit = wal_readable_to(&tli);
	walk->history = readTimeLineHistory(tli);
	choose_beginning(walk, restart, tli, resume);
	if (XLogRecPtrIsInvalid(restart) || (offset > 0 && offset < SizeOfXLogShortPHD))
	{
		unproven(proof, psprintf("no record can begin at %X/%X", LSN_FORMAT_ARGS(restart)));
		return;
	}

	walk->reader = XLogReaderAllocate(wal_segment_size, NULL,
									  XL_ROUTINE(.page_read = read_page), walk);
	if (walk->reader == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed while allocating a WAL reader.")));
	walk->reader->system_identifier = GetSystemIdentifier();

	/* A walk that goes on somewhere, or that the file settles, would not notice. */
	if (restart <= walk->limit && !wal_exists_from(restart, &walk->missing))
	{
		unproven(proof, walk->missing);
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
	walk.fd = -1;

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
		/* The reader lives in the context; it holds no file of its own. */
		close_segment(&walk);
		MemoryContextSwitchTo(caller);
		MemoryContextDelete(context);
	}
	PG_END_TRY();
	return proof;
}
