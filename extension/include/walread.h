/*
 * walread.h
 *		Records of this server's own WAL, one after the other, without waiting.
 */
#ifndef SLOTKEEPER_WALREAD_H
#define SLOTKEEPER_WALREAD_H

#include "postgres.h"

#include "access/xlogreader.h"
#include "nodes/pg_list.h"

typedef struct WalReader
{
	XLogReaderState *xlog;		/* the record that was read last */
	XLogRecPtr	limit;			/* how far this server has it; never read beyond */
	TimeLineID	tli;			/* the timeline that limit is on */
	List	   *history;		/* of tli */

	/* of the page callback */
	int			fd;				/* the open segment, or -1 */
	XLogSegNo	segno;
	TimeLineID	segment_tli;
	bool		beyond_limit;
	char	   *missing;
} WalReader;

typedef enum WalRead
{
	WAL_READ_RECORD,
	WAL_READ_NOT_YET,			/* the record needs WAL beyond the limit */
	WAL_READ_FAILED				/* a segment is missing, or there is no valid record */
} WalRead;

/*
 * Allocates in the current memory context and fixes the limit. Everything but
 * the open segment goes with the context; wal_reader_close, which never raises
 * an error and may be called twice, closes that.
 */
extern void wal_reader_open(WalReader *reader);
extern void wal_reader_close(WalReader *reader);

/* Whether a record could begin at this position at all. */
extern bool wal_reader_possible(XLogRecPtr at);

/* The next record read is the one at this (possible) position. */
extern void wal_reader_begin(WalReader *reader, XLogRecPtr at);

/* *why gets a palloc'd sentence unless there is a record. */
extern WalRead wal_reader_next(WalReader *reader, char **why);

#endif							/* SLOTKEEPER_WALREAD_H */
