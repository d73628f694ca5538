/*
 * slotkeeper.h
 *		What the files of the extension share: a fence, a marker, a look at a
 *		slot, an outcome, and the isolation that one slot's work runs in.
 */
#ifndef SLOTKEEPER_H
#define SLOTKEEPER_H

#include "compat.h"

#include "access/xlogdefs.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "replication/slot.h"
#include "utils/timestamp.h"

#define SK_LIBRARY_VERSION "1.0"
#define SK_PROTOCOL 1

#define HOLD_NAME "slotkeeper_hold"
#define WAL_HOLD_NAME "slotkeeper_wal"

/* --- incarnation.c: tells one slot directory from a later one ------------- */

typedef struct Incarnation
{
	uint64		inode;
	bool		has_birth;		/* the file system may have no birth time */
	TimestampTz birth;
} Incarnation;

/* Of pg_replslot/<name>; false where there is no such directory, or it cannot be seen. */
extern bool incarnation_of(const char *slot_name, Incarnation *result);

/* Whether nothing shows that a and b are different directories. */
extern bool incarnation_same(const Incarnation *a, const Incarnation *b);

extern Datum incarnation_datum(const Incarnation *inc, Oid type);

/* --- textfile.c: small files of key=value lines under a checksum ---------- */

typedef struct TextFile
{
	int			n;
	char	  **keys;
	char	  **values;
} TextFile;

typedef enum TextFileState
{
	TEXTFILE_ABSENT,
	TEXTFILE_DAMAGED,
	TEXTFILE_OK
} TextFileState;

/* Reads path; an empty file is absent, an unreadable one damaged. title is its first line. */
extern TextFileState textfile_read(const char *path, const char *title, TextFile *result);

/* The value of key, or NULL. */
extern const char *textfile_get(const TextFile *file, const char *key);
extern bool textfile_get_int64(const TextFile *file, const char *key, int64 *value);
extern bool textfile_get_uint64(const TextFile *file, const char *key, uint64 *value);

extern void textfile_begin(StringInfo buf, const char *title);
extern void textfile_put(StringInfo buf, const char *key, const char *fmt,...) pg_attribute_printf(3, 4);

/*
 * Ends buf with its checksum and puts it at path, durably and at once: temporary
 * file, fsync, rename, fsync of the directory. With locked_fd the new file is
 * flocked before it can be seen, and stays so until the caller closes it.
 */
extern void textfile_write(StringInfo buf, const char *path, int *locked_fd);

/* What a writing call shows, and what the fence file holds. */
typedef struct Fence
{
	char	   *scope;
	char	   *store;
	int64		epoch;
	char	   *owner;
	uint64		system_identifier;
	TimeLineID	timeline;
} Fence;

/* --- marker.c: the file that makes a slot ours ---------------------------- */

typedef enum MarkerKind
{
	MARKER_MIRROR,
	MARKER_ORIGINAL,
	MARKER_HOLD,
	MARKER_WAL
} MarkerKind;

typedef struct Marker
{
	int			version;
	MarkerKind	kind;
	char	   *scope;
	char	   *store;
	uint64		system_identifier;
	TimeLineID	timeline;
	int64		generation;
	bool		has_source;
	Incarnation source;
	char	   *way;			/* NULL where nothing was proven */
	XLogRecPtr	witness;		/* of way later_file: the file's position; else Invalid */
	TransactionId unheld_before;	/* of a hold on a standby; see sessions.c */
	TimestampTz held_since;
	XLogRecPtr	held_from;
	Incarnation own;			/* of one that was read: the directory that it lies in */
} Marker;

/*
 * The marker of a slot; false where there is none, where its checksum does not
 * match, or where it was written into another directory than the one it is in.
 */
extern bool marker_read(const char *slot_name, Marker *result);

/* Writes where the content differs from what is there. True when it wrote. */
extern bool marker_write(const char *slot_name, const Marker *marker);

/*
 * The same where old was read while nobody else could write: with the slot in
 * hand and the fence locked.
 */
extern bool marker_renew(const char *slot_name, const Marker *old, const Marker *marker);

/* A marker as this caller writes it, without source and way. */
extern void marker_init(Marker *marker, MarkerKind kind, const Fence *fence, int64 generation);

/* Reads it; whether it is this controller's. */
extern bool marker_is_ours(const char *slot_name, const Fence *fence, Marker *marker);

/* Removes it, durably. */
extern void marker_remove(const char *slot_name);

/*
 * The position of the snapshot file that decoding from restart would begin with,
 * as far as the marker (or NULL) knows.
 */
extern XLogRecPtr marker_file_at(const Marker *marker, XLogRecPtr restart);

extern Datum marker_datum(const Marker *marker, Oid type);

/* --- fence.c: who may write ----------------------------------------------- */

/* Why a whole call is refused. */
typedef struct Refusal
{
	const char *code;
	char	   *detail;
	char	   *hint;
} Refusal;

typedef enum CallPlace
{
	ON_ANY_NODE,
	ON_STANDBY
} CallPlace;

/*
 * Locks the fence file and looks whether this caller may write here. The lock
 * is an open file: fence_leave() or the end of the (sub)transaction gives it up.
 */
extern bool fence_enter(const Fence *fence, CallPlace place, int *lock, Refusal *refusal);
extern void fence_leave(int lock);

/* For node(): the fence file's content, false where there is none. */
extern bool fence_read(Fence *result, TimestampTz *heartbeat);
extern Datum fence_datum(const Fence *fence, Oid type);

/* ERROR 42501 unless the role has REPLICATION. */
extern void require_replication_role(void);

/* --- look.c: slots as they are in shared memory --------------------------- */

typedef struct SlotLook
{
	ReplicationSlotPersistentData data;
	TransactionId effective_catalog_xmin;
	pid_t		active_pid;
	const char *invalidated;	/* the reason, or NULL */
} SlotLook;

#define LookIsPhysical(look) ((look)->data.database == InvalidOid)

/* Every slot in one scan under the control lock; palloc'd. */
extern SlotLook *look_at_all_slots(int *count);

/* One slot; false where there is none of that name. */
extern bool look_at_slot(const char *name, SlotLook *look);

extern void look_at(ReplicationSlot *slot, SlotLook *look);

extern int	count_slots_in_use(void);

/* --- slotfile.c: the state file ------------------------------------------- */

/* Reads a slot's state file back; *why (may be NULL) is a sentence when false. */
extern bool statefile_read(const char *slot_name, ReplicationSlotPersistentData *data, char **why);

/* Whether the state file holds what the look shows. */
extern bool statefile_holds(const SlotLook *look, char **why);

/*
 * Saves the acquired slot and reads the file back. A state.tmp that a failed
 * save left behind is removed first: it would block every later save.
 */
extern bool slot_save(char **why);

/* --- guard.c: one slot's work must not end the others' --------------------- */

typedef struct Failure
{
	int			sqlerrcode;
	char	   *message;
	ErrorData  *edata;
} Failure;

typedef void (*GuardedWork) (void *arg);

/*
 * Runs work in a subtransaction. False, with the error in *failure, when it
 * failed. Whatever slot it had in hand is still in hand then.
 */
extern bool guarded(GuardedWork work, void *arg, Failure *failure);

/*
 * Cancels, shutdowns and recovery conflicts are not an outcome: goes on with
 * that error where it is one.
 */
extern void failure_rethrow_if_cancel(const Failure *failure);

/* --- hand.c: the acquired slot ---------------------------------------------- */

/* Which slot this backend has in its hands, so that every way out lets it go. */
extern void hand_acquire(const char *name);
extern void hand_create(const char *name, bool logical);

/* Makes the new slot permanent and reads its file back. */
extern bool hand_persist(char **why);

/* A slot that was made and is not permanent yet is dropped, any other released. */
extern void hand_let_go(void);

/* Drops the slot in hand for good. */
extern void hand_drop(void);

/* --- dblock.c ------------------------------------------------------------- */

typedef enum DatabaseState
{
	DATABASE_LOCKED,			/* locked, and its directory is there */
	DATABASE_BUSY,				/* somebody is about to drop it */
	DATABASE_GONE
} DatabaseState;

extern DatabaseState database_lock(Oid database);
extern void database_unlock(Oid database);

/* --- plugin.c ------------------------------------------------------------- */

/* Whether the output plugin's library file is there; does not load it. */
extern bool plugin_exists(const char *plugin);

/* Whether this server lets anybody decode with it. */
extern bool plugin_allowed(const char *plugin);

/* --- args.c: decoding and validating what callers give ---------------------- */

typedef struct Change
{
	NameData	name;
	NameData	plugin;
	Oid			database;
	bool		two_phase;
	XLogRecPtr	two_phase_at;	/* Invalid where NULL */
	XLogRecPtr	restart_lsn;
	XLogRecPtr	confirmed_flush;
	TransactionId catalog_xmin;
	bytea	   *snapshot;		/* NULL where none was given */
	XLogRecPtr	snapshot_at;	/* where the file belongs: restart_lsn or later */
	Incarnation source;
	char	   *resume;			/* NULL for a new walk */
} Change;

typedef struct Want
{
	TransactionId catalog_xmin;
	bool		has_slot;
	NameData	slot;
	Incarnation source;
} Want;

extern void arg_fence(FunctionCallInfo fcinfo, int argno, Fence *result);
extern int64 arg_int64(FunctionCallInfo fcinfo, int argno, const char *what, int64 min, int64 max);
extern Change *arg_changes(FunctionCallInfo fcinfo, int argno, int *count);
extern Want *arg_wants(FunctionCallInfo fcinfo, int argno, int *count);
extern Incarnation *arg_incarnations(FunctionCallInfo fcinfo, int argno, int *count);

/* Valid slot names, none twice. */
extern NameData *arg_names(FunctionCallInfo fcinfo, int argno, int *count);

/* --- outcome.c: the rows that come back ------------------------------------ */

typedef struct Outcome
{
	NameData	name;
	const char *code;
	XLogRecPtr	restart_lsn;	/* what is Invalid or NULL becomes NULL */
	XLogRecPtr	confirmed_flush;
	TransactionId catalog_xmin;
	const char *way;
	XLogRecPtr	proven_at;
	char	   *resume;
	char	   *detail;
	char	   *hint;
} Outcome;

extern void outcomes_begin(FunctionCallInfo fcinfo);
extern void outcome_put(FunctionCallInfo fcinfo, const Outcome *outcome);
extern void outcome_init(Outcome *outcome, const char *name);

/* code and detail at once; fmt may be NULL */
extern void outcome_is(Outcome *outcome, const char *code, const char *fmt,...) pg_attribute_printf(3, 4);
extern void outcome_hint(Outcome *outcome, const char *fmt,...) pg_attribute_printf(2, 3);
extern void outcome_position(Outcome *outcome, const ReplicationSlotPersistentData *data);

/* What became of a slot whose work failed with an error. */
extern void outcome_failed(Outcome *outcome, const Failure *failure);

/* The same refusal on every row. */
extern void outcomes_refuse(FunctionCallInfo fcinfo, const Refusal *refusal,
							const NameData *names, Size stride, int count);

/* --- hold.c ---------------------------------------------------------------- */

/* The files of the hold as one call has found them in order. */
typedef struct HoldSeen
{
	bool		valid;
	Incarnation own;
	TransactionId catalog_xmin;
	int64		generation;
	TransactionId unheld_before;
	TimestampTz held_since;
	XLogRecPtr	held_from;
} HoldSeen;

/*
 * Whether this node's hold counts and pins catalog rows from x on; gives its
 * generation. *why is a sentence when false. Its files are read again only where
 * memory or the directory is not what seen says; zeroed, nothing has been seen.
 */
extern bool hold_pins(const Fence *fence, TransactionId x, HoldSeen *seen, int64 *generation, char **why);

/* --- sessions.c ------------------------------------------------------------ */

/*
 * Whether some session here may take rows away from what needs them from x on,
 * once this standby is promoted; *which (palloc'd) names a few.
 */
extern bool sessions_endanger(const HoldSeen *hold, TransactionId x, char **which);

/*
 * Whether no session here is older than the hold of this standby, and since when
 * that pins; false where it is not known since when.
 */
extern bool sessions_all_held(TimestampTz *since);

/* A time not before now that is after the beginning of each session that is there. */
extern TimestampTz sessions_all_began_before(void);

/* --- outdated.c ------------------------------------------------------------ */

/*
 * Whether catalog rows that decoding from `from` may need, in this database, have
 * died by WAL before `to`; true as well where more than max_bytes would have to be
 * read, or where it is not there. *where is how far it looked.
 */
extern bool catalog_rows_died(XLogRecPtr from, XLogRecPtr to, Oid database, int64 max_bytes, XLogRecPtr *where);

/* --- walhold.c ------------------------------------------------------------- */

/* Sets, makes or (at Invalid) drops slotkeeper_wal; fills the row. */
extern void wal_hold_set(const Fence *fence, int64 generation, XLogRecPtr wal, Outcome *out);

/* --- mirror.c ------------------------------------------------------------- */

/* What holds for all slots of one call, so that a thousand of them ask once. */
typedef struct Seen
{
	HoldSeen	hold;
	NameData	plugin;			/* one that is here and may be used; "" for none */
	XLogRecPtr	wal_from;		/* the WAL from here on was there a moment ago; Invalid for none */
	Oid			outdated;		/* the database in which catalog rows have died; Invalid for none */
	XLogRecPtr	outdated_at;	/* and where in the WAL that was */
} Seen;

typedef struct MirrorCall
{
	const Fence *fence;
	const Change *change;
	int64		max_bytes;
	int64		generation;		/* of this node's hold */
	Outcome    *out;
	Seen	   *seen;
} MirrorCall;

/* Makes a new mirror, or the row says why not. */
extern void mirror_make(MirrorCall *call, const char *code);

/* Moves the mirror in hand, or the row says why not. */
extern void mirror_move(MirrorCall *call, const Marker *marker);

/* Is this still a standby of the caller's timeline that has replayed the change? */
extern bool standby_has_replayed(MirrorCall *call);

#endif							/* SLOTKEEPER_H */
