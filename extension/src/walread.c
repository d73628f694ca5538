/*
 * walread.c
 *		Records of this server's own WAL, one after the other, without waiting.
 *
 * Core's page callbacks cannot be used: read_local_xlog_page waits for WAL that
 * is not there yet, and both raise an error where a segment is missing.
 */
#include "postgres.h"

#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "compat.h"
#include "wal.h"
#include "walread.h"

/* XLogReader's page callback. */
static int
read_page(XLogReaderState *xlog, XLogRecPtr page, int wanted,
		  XLogRecPtr record, char *buffer)
{
	WalReader  *reader = xlog->private_data;
	int			available;
	XLogSegNo	segno;

	CHECK_FOR_INTERRUPTS();

	/* XLogReader takes a page with nothing but its header for a failure. */
	if (page + Max(wanted, SizeOfXLogShortPHD + 1) > reader->limit)
	{
		reader->beyond_limit = true;
		return -1;
	}
	available = Min(reader->limit - page, XLOG_BLCKSZ);

	XLByteToSeg(page, segno, wal_segment_size);
	if (reader->fd < 0 || reader->segno != segno)
	{
		wal_reader_close(reader);
		reader->fd = wal_open_segment(segno, reader->history, &reader->segment_tli,
									  &reader->missing);
		if (reader->fd < 0)
			return -1;
		reader->segno = segno;
	}
	xlog->seg.ws_tli = reader->segment_tli;

	/* What lies behind the limit may be of a recycled segment, or half written. */
	memset(buffer + available, 0, XLOG_BLCKSZ - available);
	if (pg_pread(reader->fd, buffer, available,
				 XLogSegmentOffset(page, wal_segment_size)) != available)
	{
		reader->missing = psprintf("WAL at %X/%X cannot be read from its segment",
								   LSN_FORMAT_ARGS(page));
		return -1;
	}
	return available;
}

void
wal_reader_open(WalReader *reader)
{
	reader->fd = -1;
	reader->limit = wal_readable_to(&reader->tli);
	reader->history = readTimeLineHistory(reader->tli);
	reader->xlog = XLogReaderAllocate(wal_segment_size, NULL,
									  XL_ROUTINE(.page_read = read_page), reader);
	if (reader->xlog == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed while allocating a WAL reader.")));
	reader->xlog->system_identifier = GetSystemIdentifier();
}

void
wal_reader_close(WalReader *reader)
{
	if (reader->fd >= 0)
		CloseTransientFile(reader->fd);
	reader->fd = -1;
}

bool
wal_reader_possible(XLogRecPtr at)
{
	uint32		offset = at % XLOG_BLCKSZ;

	return !XLogRecPtrIsInvalid(at) && at == MAXALIGN64(at) &&
		(offset == 0 || offset >= SizeOfXLogShortPHD);
}

void
wal_reader_begin(WalReader *reader, XLogRecPtr at)
{
	/* A page's very start stands for the record after the page's header. */
	if (XLogSegmentOffset(at, wal_segment_size) == 0)
		at += SizeOfXLogLongPHD;
	else if (at % XLOG_BLCKSZ == 0)
		at += SizeOfXLogShortPHD;
	XLogBeginRead(reader->xlog, at);
}

WalRead
wal_reader_next(WalReader *reader, char **why)
{
	char	   *message = NULL;

	CHECK_FOR_INTERRUPTS();
	reader->beyond_limit = false;
	reader->missing = NULL;
	if (XLogReadRecord(reader->xlog, &message) != NULL)
		return WAL_READ_RECORD;

	if (reader->beyond_limit)
	{
		*why = psprintf("the record at %X/%X needs WAL beyond %X/%X, which is as far as this server has it",
						LSN_FORMAT_ARGS(reader->xlog->EndRecPtr), LSN_FORMAT_ARGS(reader->limit));
		return WAL_READ_NOT_YET;
	}
	if (reader->missing != NULL)
		*why = reader->missing;
	else
		*why = psprintf("there is no valid record at %X/%X: %s",
						LSN_FORMAT_ARGS(reader->xlog->EndRecPtr),
						message != NULL ? message : "WAL ends there");
	return WAL_READ_FAILED;
}
