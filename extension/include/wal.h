/*
 * wal.h
 *		Which WAL really lies in pg_wal, and how far this server may read it.
 */
#ifndef SLOTKEEPER_WAL_H
#define SLOTKEEPER_WAL_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "nodes/pg_list.h"

/* The replay position (in recovery, with its timeline) or the flush position. */
extern XLogRecPtr wal_readable_to(TimeLineID *tli);

/*
 * Whether the segment files from `from` up to the readable position exist on
 * the right timelines. Looks at the files themselves: XLogGetLastRemovedSegno()
 * is 0 after a restart. *why may be NULL; else a palloc'd sentence when false.
 */
extern bool wal_exists_from(XLogRecPtr from, char **why);

/*
 * Opens the segment file that a decoder on this server would read, given the
 * history of the timeline it is on. The descriptor is fd.c's: closed at the end
 * of the (sub)transaction at the latest. -1, with a palloc'd *why, where the
 * file is missing, cannot be opened or is not a whole segment. *tli gets the
 * timeline in the file's name.
 */
extern int	wal_open_segment(uint64 segno, List *history, TimeLineID *tli, char **why);

#endif							/* SLOTKEEPER_WAL_H */
