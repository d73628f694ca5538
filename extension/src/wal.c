/*
 * wal.c
 *		Which WAL really lies in pg_wal, and how far this server may read it.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "compat.h"
#include "wal.h"

XLogRecPtr
wal_readable_to(TimeLineID *tli)
{
	/*
	 * A promotion between the two lines is harmless: GetFlushRecPtr is only
	 * asked once recovery is known to be over.
	 */
	if (RecoveryInProgress())
		return GetXLogReplayRecPtr(tli);
	return compat_flushed_to(tli);
}

/*
 * The timeline in the name of the file that core's decoding reads (see
 * XLogReadDetermineTimeline in xlogutils.c): the newest timeline on the segment,
 * since a fork copies the segment's beginning. An older timeline's file of the
 * same segment may be gone or renamed to .partial at any moment.
 */
static TimeLineID
segment_timeline(uint64 segno, List *history)
{
	XLogRecPtr	last;

	XLogSegNoOffsetToRecPtr(segno, wal_segment_size - 1, wal_segment_size, last);
	return tliOfPointInHistory(last, history);
}

static void
set_why(char **why, char *sentence)
{
	if (why != NULL)
		*why = sentence;
	else
		pfree(sentence);
}

int
wal_open_segment(uint64 segno, List *history, TimeLineID *tli, char **why)
{
	char		path[MAXPGPATH];
	struct stat st;
	int			fd;

	*tli = segment_timeline(segno, history);
	XLogFilePath(path, *tli, segno, wal_segment_size);

	fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
	if (fd < 0)
	{
		if (errno == ENOENT)
			set_why(why, psprintf("WAL segment \"%s\" is not there", path));
		else
			set_why(why, psprintf("WAL segment \"%s\" cannot be opened: %m", path));
		return -1;
	}
	if (fstat(fd, &st) != 0 || st.st_size != wal_segment_size)
	{
		CloseTransientFile(fd);
		set_why(why, psprintf("WAL segment \"%s\" is not a whole segment", path));
		return -1;
	}
	return fd;
}

static bool
segment_exists(uint64 segno, List *history)
{
	char		path[MAXPGPATH];
	struct stat st;

	XLogFilePath(path, segment_timeline(segno, history), segno, wal_segment_size);
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == wal_segment_size;
}

/* Says what is missing, and from where on WAL is here without a gap. */
static void
say_where_wal_begins(XLogSegNo missing, XLogSegNo last, List *history, char **why)
{
	XLogSegNo	first = last + 1;
	XLogRecPtr	begin;
	char		path[MAXPGPATH];

	if (why == NULL)
		return;
	while (first - 1 > missing && segment_exists(first - 1, history))
		first--;
	XLogFilePath(path, segment_timeline(missing, history), missing, wal_segment_size);
	if (first > last)
	{
		set_why(why, psprintf("WAL segment \"%s\" is not there", path));
		return;
	}
	XLogSegNoOffsetToRecPtr(first, 0, wal_segment_size, begin);
	set_why(why, psprintf("WAL segment \"%s\" is not there, this server has WAL from %X/%X on",
						  path, LSN_FORMAT_ARGS(begin)));
}

bool
wal_exists_from(XLogRecPtr from, char **why)
{
	TimeLineID	tli;
	XLogRecPtr	upto = wal_readable_to(&tli);
	List	   *history;
	XLogSegNo	segno;
	XLogSegNo	last;
	bool		exists = true;

	if (XLogRecPtrIsInvalid(from))
	{
		set_why(why, pstrdup("there is no position to look at"));
		return false;
	}
	if (from > upto)
	{
		set_why(why, psprintf("WAL from %X/%X on is not there yet: this server has it up to %X/%X",
							  LSN_FORMAT_ARGS(from), LSN_FORMAT_ARGS(upto)));
		return false;
	}

	/* A position at the very end of a segment needs nothing of the next. */
	if (from == upto)
		return true;

	history = readTimeLineHistory(tli);
	XLByteToSeg(from, segno, wal_segment_size);
	XLByteToPrevSeg(upto, last, wal_segment_size);
	for (; exists && segno <= last; segno++)
	{
		CHECK_FOR_INTERRUPTS();
		exists = segment_exists(segno, history);
		if (!exists)
			say_where_wal_begins(segno, last, history, why);
	}
	list_free_deep(history);
	return exists;
}
