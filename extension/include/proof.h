/*
 * proof.h
 *		Why a mirror may be shown: the walk over the WAL and the snapshot file.
 *
 * Nothing here takes a heavyweight lock, builds a decoding context or connects
 * to a slot's database.
 */
#ifndef SLOTKEEPER_PROOF_H
#define SLOTKEEPER_PROOF_H

#include "postgres.h"

#include "access/xlogdefs.h"

typedef enum ProofWay
{
	PROOF_NONE = 0,				/* not proven, and the walk has reached confirmed_flush_lsn */
	PROOF_UNFINISHED,			/* max_bytes used up: go on with the resume text */
	PROOF_FILE,					/* a valid snapshot file at exactly restart_lsn */
	PROOF_NOTHING_RUNNING,		/* nothing ran at a record before the decoder is FULL */
	PROOF_PHASES,				/* START, BUILDING, FULL, CONSISTENT before confirmed_flush_lsn */
	PROOF_LATER_FILE			/* a valid snapshot file after restart_lsn: proven_at is its position */
} ProofWay;

typedef struct Proof
{
	ProofWay	way;
	XLogRecPtr	proven_at;		/* Invalid where way is NONE or UNFINISHED */
	char	   *resume;			/* palloc'd in the caller's context; NULL unless UNFINISHED */
	char	   *detail;			/* why not, for the row; NULL when proven */
} Proof;

/* file, nothing_running, phases, later_file; NULL for NONE and UNFINISHED */
extern const char *proof_way_name(ProofWay way);

/*
 * Walks this server's own WAL on the timeline that it is on, from restart on.
 * Reads no further than the replay position (in recovery) or the flush position;
 * a record that needs more ends the walk UNFINISHED. resume may be NULL. An ERROR
 * only for a resume text that is malformed or of another restart; WAL from restart
 * on that is not there, or cannot be read, ends as PROOF_NONE with a detail.
 */
extern Proof proof_walk(XLogRecPtr restart, XLogRecPtr confirmed,
						const char *resume, int64 max_bytes);

#define SNAPSHOT_DIR "pg_logical/snapshots"

/* How the name of a snapshot file of ours ends that is being written. */
#define SNAPSHOT_TEMPORARY ".slotkeeper.tmp"

typedef enum SnapshotState
{
	SNAPSHOT_ABSENT,
	SNAPSHOT_VALID,
	SNAPSHOT_BAD
} SnapshotState;

extern const char *snapshot_state_name(SnapshotState state);

/* Validates bytes as this major's snapshot at `at`; *why gets a palloc'd sentence when false. */
extern bool snapshot_bytes_valid(XLogRecPtr at, const char *bytes, Size len, char **why);

/* Looks at pg_logical/snapshots/<at>.snap; *why may be NULL. */
extern SnapshotState snapshot_file_state(XLogRecPtr at, char **why);

/* The position of the first snapshot file between the two, both excluded; Invalid: none. */
extern XLogRecPtr snapshot_first_between(XLogRecPtr after, XLogRecPtr before);

/* The file's bytes, palloc'd, or NULL where there is none. */
extern bytea *snapshot_file_read(XLogRecPtr at);

/*
 * Puts validated bytes at exactly `at`, durably: temporary file, fsync, rename,
 * fsync of the directory. A valid file that is there already is kept whatever
 * its bytes. False, with *why, where the bytes are not valid; ERROR for I/O.
 */
extern bool snapshot_file_install(XLogRecPtr at, const char *bytes, Size len, char **why);

#endif							/* SLOTKEEPER_PROOF_H */
