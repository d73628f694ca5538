/*
 * wal.h
 *		Which WAL really lies in pg_wal, and how far this server may read it.
 */
#ifndef SLOTKEEPER_WAL_H
#define SLOTKEEPER_WAL_H

#include "postgres.h"

#include "access/xlogdefs.h"

/* The replay position (in recovery, with its timeline) or the flush position. */
extern XLogRecPtr wal_readable_to(TimeLineID *tli);

/*
 * Whether the segment files from `from` up to the readable position exist on
 * the right timelines. Looks at the files themselves: XLogGetLastRemovedSegno()
 * is 0 after a restart. *why may be NULL; else a palloc'd sentence when false.
 */
extern bool wal_exists_from(XLogRecPtr from, char **why);

#endif							/* SLOTKEEPER_WAL_H */
