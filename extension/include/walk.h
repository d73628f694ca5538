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
 * How far a decoder that starts at restart without a snapshot file would be.
 * CONSISTENT is not among them: there the walk ends.
 */
typedef enum WalkPhase
{
	WALK_START,
	WALK_BUILDING,
	WALK_FULL
} WalkPhase;

typedef struct WalkState
{
	XLogRecPtr	restart;		/* where the walk began: the slot's restart_lsn */
	TimeLineID	tli;			/* the timeline this server was on */
	XLogRecPtr	at;				/* the next record to look at */
	WalkPhase	phase;
	TransactionId next_phase_at;	/* invalid in WALK_START */
	bool		catalog_changed;	/* between restart and at */
} WalkState;

extern void walk_state_begin(WalkState *state, XLogRecPtr restart, TimeLineID tli);

/*
 * Takes in one record that starts at lsn. Gives the way by which a decoder is
 * proven consistent there, else PROOF_NONE. Does not compare with
 * confirmed_flush_lsn, and does not know about snapshot files.
 */
extern ProofWay walk_state_record(WalkState *state, XLogReaderState *record);

/* Whether no later record can prove anything for this restart_lsn any more. */
extern bool walk_state_hopeless(const WalkState *state);

/* A palloc'd sentence: why nothing was proven before confirmed. */
extern char *walk_state_why(const WalkState *state, XLogRecPtr confirmed);

/* The record at restart is of a kind at which a decoder looks for a file. */
extern bool walk_is_snapshot_point(XLogReaderState *record);

/* The resume text, palloc'd; at most WALK_TEXT_MAX bytes. */
#define WALK_TEXT_MAX 160
extern char *walk_state_text(const WalkState *state);

/* The reverse; ERROR 22023 where the text is malformed or of another restart_lsn. */
extern void walk_state_parse(WalkState *state, const char *text, XLogRecPtr restart);

#endif							/* SLOTKEEPER_WALK_H */
