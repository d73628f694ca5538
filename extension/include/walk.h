/*
 * walk.h
 *		What the walk over the WAL knows at one position, and its text form.
 */
#ifndef SLOTKEEPER_WALK_H
#define SLOTKEEPER_WALK_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "access/xlogreader.h"
#include "storage/standbydefs.h"

#include "proof.h"

/*
 * How far a decoder that starts at restart without any snapshot file would be.
 * Where it becomes CONSISTENT with true catalogs the walk ends; WALK_STALE is
 * CONSISTENT with catalogs that may lack changes, and no file is opened any more.
 */
typedef enum WalkPhase
{
	WALK_START,
	WALK_BUILDING,
	WALK_FULL,
	WALK_STALE
} WalkPhase;

typedef struct WalkState
{
	XLogRecPtr	restart;		/* where the walk began: the slot's restart_lsn */
	TimeLineID	tli;			/* the timeline this server was on */
	XLogRecPtr	at;				/* the next record to look at */
	WalkPhase	phase;
	TransactionId next_phase_at;	/* invalid in WALK_START */
	TransactionId changed_by;	/* the newest that changed a catalog before FULL, or invalid */
	bool		lacks_changes;	/* FULL or STALE: with catalogs that may lack changes */
	XLogRecPtr	file;			/* the first snapshot file that the decoder meets, or invalid */
	TransactionId file_next;	/* older ones have ended, or run there; invalid: not known yet */
	bool		restarted;		/* a shutdown or an end of recovery was met */
	bool		barred;			/* and after it a prepared catalog change: see phases.c */
} WalkState;

extern void walk_state_begin(WalkState *state, XLogRecPtr restart, TimeLineID tli);

/* Whether a decoder in this state would open a snapshot file at this record. */
extern bool walk_state_opens_file(const WalkState *state, XLogReaderState *record);

/* There is a valid one. Comes before walk_state_record for the same record. */
extern void walk_state_file(WalkState *state, XLogReaderState *record);

/*
 * Takes in one record. Gives the way by which a decoder is proven consistent
 * now, else PROOF_NONE. Does not compare with confirmed_flush_lsn.
 */
extern ProofWay walk_state_record(WalkState *state, XLogReaderState *record);

/* Whether no later record can prove anything any more, unless a file comes. */
extern bool walk_state_hopeless(const WalkState *state);

/* A palloc'd sentence: why nothing was proven before confirmed. */
extern char *walk_state_why(const WalkState *state, XLogRecPtr confirmed);

/* The record as one of running transactions, or NULL. */
extern const xl_running_xacts *walk_running_xacts(XLogReaderState *record);

/* The record at restart is of a kind at which a decoder looks for a file. */
extern bool walk_is_snapshot_point(XLogReaderState *record);

/* --- walktext.c ------------------------------------------------------------ */

/* The resume text, palloc'd; at most WALK_TEXT_MAX bytes. */
#define WALK_TEXT_MAX 240
extern char *walk_state_text(const WalkState *state);

/* The reverse; ERROR 22023 where the text is malformed or of another restart_lsn. */
extern void walk_state_parse(WalkState *state, const char *text, XLogRecPtr restart);

/* --- walkmemory.c ---------------------------------------------------------- */

extern void walk_remember(const WalkState *state);

/* What is remembered of restart, where the snapshot files are still as they were; else NULL. */
extern const WalkState *walk_recall(XLogRecPtr restart);

#endif							/* SLOTKEEPER_WALK_H */
