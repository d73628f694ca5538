/*
 * compat.h
 *		Everything that differs between PostgreSQL's majors, and nothing else.
 *
 * No other file asks for the version. What is needed of a private part of core is
 * described here, one description per major, with the file that it comes from.
 */
#ifndef SLOTKEEPER_COMPAT_H
#define SLOTKEEPER_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 130000 || PG_VERSION_NUM >= 200000
#error "slotkeeper: this major of PostgreSQL is not supported; 13 to 19 are"
#endif

#include "access/heapam_xlog.h"
#include "access/timeline.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "replication/reorderbuffer.h"
#include "replication/slot.h"
#include "replication/snapbuild.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "utils/guc.h"
#include "utils/palloc.h"
#include "utils/snapshot.h"
#include "utils/tuplestore.h"

#if PG_VERSION_NUM >= 150000
#include "access/xlogrecovery.h"
#endif
#if PG_VERSION_NUM >= 140000
#include "storage/procarray.h"
#include "utils/backend_status.h"
#include "utils/wait_event.h"
#else
#include "pgstat.h"
#endif
#if PG_VERSION_NUM >= 180000
#include "replication/snapbuild_internal.h"
#endif
#if PG_VERSION_NUM >= 190000
#include "replication/logicalctl.h"
#endif

/* --- small things ---------------------------------------------------------- */

#if PG_VERSION_NUM < 140000
#define LSN_FORMAT_ARGS(lsn) ((uint32) ((lsn) >> 32)), ((uint32) (lsn))
#define ROLE_PG_SIGNAL_BACKEND DEFAULT_ROLE_SIGNAL_BACKENDID
#define ReadNextTransactionId() XidFromFullTransactionId(ReadNextFullTransactionId())
#endif

#ifndef strtou64
#define strtou64(text, end, base) ((uint64) strtoull(text, end, base))
#define strtoi64(text, end, base) ((int64) strtoll(text, end, base))
#endif

/* How a loadable library's file name ends; up to 14 only core's own build knows. */
#ifndef DLSUFFIX
#define DLSUFFIX ".so"
#endif

/* Prepares a set-returning function's tuplestore and descriptor. */
static inline void
compat_materialize(FunctionCallInfo fcinfo)
{
#if PG_VERSION_NUM >= 150000
	InitMaterializedSRF(fcinfo, 0);
#else
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old;
	TupleDesc	desc;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	if (!(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("materialize mode required, but it is not allowed in this context")));
	old = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setDesc = desc;
	rsinfo->setResult = tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0,
											  false, work_mem);
	MemoryContextSwitchTo(old);
#endif
}

/* --- records ----------------------------------------------------------------- */

/* The database of the row, Invalid where all share it. */
static inline Oid
compat_new_cid_database(const xl_heap_new_cid *cid)
{
#if PG_VERSION_NUM >= 160000
	return cid->target_locator.dbOid;
#else
	return cid->target_node.dbNode;
#endif
}

/* --- what sessions remember -------------------------------------------------- */

/*
 * From 14 on a session remembers up to where rows are of no use to anybody, and
 * does not take that back when a slot comes to need older ones (GlobalVisState in
 * procarray.c). Up to 13 each snapshot brings it anew.
 */
#define COMPAT_SESSIONS_REMEMBER (PG_VERSION_NUM >= 140000)

typedef struct CompatSession
{
	int			pid;
	TimestampTz start;
	bool		idle;			/* and in no transaction */
	Oid			role;
	const char *application;
} CompatSession;

/* Has this session look anew. */
static inline void
compat_forget_horizons(void)
{
#if PG_VERSION_NUM >= 140000
	(void) GetOldestNonRemovableTransactionId(NULL);
#endif
}

/* How many sessions there are to be asked for; none where none remembers. */
static inline int
compat_sessions(void)
{
#if COMPAT_SESSIONS_REMEMBER
	pgstat_clear_backend_activity_snapshot();
	return pgstat_fetch_stat_numbackends();
#else
	return 0;
#endif
}

/*
 * The i-th, from 1 on; false where it is none that could read a catalog after a
 * promotion. Its process id is given in any case, 0 for none.
 */
static inline bool
compat_session(int i, CompatSession *session)
{
#if PG_VERSION_NUM >= 140000
#if PG_VERSION_NUM >= 160000
	LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index(i);
#else
	LocalPgBackendStatus *local = pgstat_fetch_stat_local_beentry(i);
#endif
	const PgBackendStatus *status = local != NULL ? &local->backendStatus : NULL;

	session->pid = 0;
	if (status == NULL || status->st_procpid == 0)
		return false;
	session->pid = status->st_procpid;
	session->start = status->st_proc_start_timestamp;
	session->idle = status->st_state == STATE_IDLE;
	session->role = status->st_userid;
	session->application = status->st_appname;
	if (!OidIsValid(status->st_databaseid)
#if PG_VERSION_NUM >= 180000
		&& status->st_state != STATE_STARTING
#endif
		)
		return false;
	return status->st_backendType == B_BACKEND || status->st_backendType == B_BG_WORKER ||
		status->st_backendType == B_WAL_SENDER;
#else
	return false;
#endif
}

/* The process in the i-th place of compat_clients(), if it serves a client; else 0. */
static inline int
compat_client(int i)
{
	const PGPROC *proc = &ProcGlobal->allProcs[i];

#if PG_VERSION_NUM >= 190000
	return proc->backendType == B_BACKEND ? proc->pid : 0;
#elif PG_VERSION_NUM >= 180000
	return proc->isRegularBackend ? proc->pid : 0;
#else
	return proc->isBackgroundWorker ? 0 : proc->pid;
#endif
}

static inline int
compat_clients(void)
{
#if PG_VERSION_NUM >= 140000
	return ProcGlobal->allProcCount;
#else
	return 0;					/* as with sessions */
#endif
}

/* --- the server's state ---------------------------------------------------- */

/* On a primary: the timeline that it writes. */
static inline TimeLineID
compat_insert_timeline(void)
{
#if PG_VERSION_NUM >= 150000
	return GetWALInsertionTimeLine();
#else
	/* a walsender's commands may have changed the variable in this process */
	InitXLOGAccess();
	return ThisTimeLineID;
#endif
}

/* On a primary: how far WAL is flushed, and on which timeline. tli may be NULL. */
static inline XLogRecPtr
compat_flushed_to(TimeLineID *tli)
{
#if PG_VERSION_NUM >= 150000
	return GetFlushRecPtr(tli);
#else
	if (tli != NULL)
		*tli = compat_insert_timeline();
	return GetFlushRecPtr();
#endif
}

/* The oldest transaction id that any database still has. */
static inline TransactionId
compat_oldest_xid(void)
{
	TransactionId oldest;

	LWLockAcquire(XidGenLock, LW_SHARED);
#if PG_VERSION_NUM >= 170000
	oldest = TransamVariables->oldestXid;
#else
	oldest = ShmemVariableCache->oldestXid;
#endif
	LWLockRelease(XidGenLock);
	return oldest;
}

/*
 * Whether a logical slot may be here. 19 turns that on and off without a restart, and on
 * a standby as its primary does; but below replica the server would not start with one.
 */
static inline bool
compat_logical_allowed(void)
{
#if PG_VERSION_NUM >= 190000
	return IsLogicalDecodingEnabled() && wal_level >= WAL_LEVEL_REPLICA;
#else
	return wal_level >= WAL_LEVEL_LOGICAL;
#endif
}

/* wal_level as it is in effect. */
static inline const char *
compat_wal_level(void)
{
#if PG_VERSION_NUM >= 190000
	/* its value is only made when it is shown */
	return GetConfigOptionByName("effective_wal_level", NULL, false);
#else
	return GetConfigOption("wal_level", false, false);
#endif
}

/* --- the snapshot file ----------------------------------------------------- */

/*
 * A header of four uint32, the builder as it lies in memory with its pointers
 * cleared, and the transaction ids that committed and (from 16 on) that changed
 * catalogs and were still running. The checksum covers all that follows it. Up to
 * 17 the builder's struct is private to snapbuild.c.
 */
#define COMPAT_SNAPSHOT_MAGIC	0x51A1E001

#if PG_VERSION_NUM >= 170000
#define COMPAT_SNAPSHOT_VERSION	6
#elif PG_VERSION_NUM >= 160000
#define COMPAT_SNAPSHOT_VERSION	5
#elif PG_VERSION_NUM >= 140000
#define COMPAT_SNAPSHOT_VERSION	4
#else
#define COMPAT_SNAPSHOT_VERSION	2
#endif

typedef struct CompatSnapshotHeader
{
	uint32		magic;
	uint32		checksum;		/* CRC-32C of everything after it */
	uint32		version;
	uint32		length;			/* of the whole file */
} CompatSnapshotHeader;

#if PG_VERSION_NUM >= 180000
typedef struct SnapBuild CompatSnapBuild;
#else
typedef struct CompatSnapBuild
{
	SnapBuildState state;
	MemoryContext context;
	TransactionId xmin;
	TransactionId xmax;
	XLogRecPtr	start_decoding_at;
#if PG_VERSION_NUM >= 140000
	XLogRecPtr	two_phase_at;
#endif
	TransactionId initial_xmin_horizon;
	bool		building_full_snapshot;
#if PG_VERSION_NUM >= 170000
	bool		in_slot_creation;
#endif
	Snapshot	snapshot;
	XLogRecPtr	last_serialized_snapshot;
	ReorderBuffer *reorder;
#if PG_VERSION_NUM >= 140000
	TransactionId next_phase_at;
#else
	struct
	{
		TransactionId next_phase_at;	/* called was_xmin */
		TransactionId xmax;
		size_t		xcnt;
		size_t		xcnt_space;
		TransactionId *xip;
	}			was_running;
#endif
	struct
	{
		size_t		xcnt;
		size_t		xcnt_space;
		bool		includes_all_transactions;
		TransactionId *xip;
	}			committed;
#if PG_VERSION_NUM >= 160000
	struct
	{
		size_t		xcnt;
		TransactionId *xip;
	}			catchange;
#endif
} CompatSnapBuild;
#endif

/* How many of the transaction ids at the end are of transactions still running. */
static inline size_t
compat_snapshot_running(const CompatSnapBuild *builder)
{
#if PG_VERSION_NUM >= 160000
	return builder->catchange.xcnt;
#else
	return 0;
#endif
}

/* --- slots ----------------------------------------------------------------- */

/* slot.c: ReplicationSlotOnDisk. The checksum covers all from version on. */
#define COMPAT_SLOT_MAGIC	0x1051CA1

#if PG_VERSION_NUM >= 170000
#define COMPAT_SLOT_VERSION	5
#elif PG_VERSION_NUM >= 160000
#define COMPAT_SLOT_VERSION	3
#else
#define COMPAT_SLOT_VERSION	2
#endif

typedef struct CompatSlotOnDisk
{
	uint32		magic;
	pg_crc32c	checksum;
	uint32		version;
	uint32		length;			/* of slotdata */
	ReplicationSlotPersistentData slotdata;
} CompatSlotOnDisk;

static inline void
compat_slot_validate_name(const char *name)
{
#if PG_VERSION_NUM >= 190000
	ReplicationSlotValidateName(name, false, ERROR);
#else
	ReplicationSlotValidateName(name, ERROR);
#endif
}

/* A temporary one; two-phase is set with the position. */
static inline void
compat_slot_create(const char *name, bool logical)
{
#if PG_VERSION_NUM >= 190000
	ReplicationSlotCreate(name, logical, RS_TEMPORARY, false, false, false, false);
#elif PG_VERSION_NUM >= 170000
	ReplicationSlotCreate(name, logical, RS_TEMPORARY, false, false, false);
#elif PG_VERSION_NUM >= 140000
	ReplicationSlotCreate(name, logical, RS_TEMPORARY, false);
#else
	ReplicationSlotCreate(name, logical, RS_TEMPORARY);
#endif
}

/* Never waits for another session; an invalidated one too, to drop it. */
static inline void
compat_slot_acquire(const char *name)
{
#if PG_VERSION_NUM >= 180000
	ReplicationSlotAcquire(name, true, false);
#elif PG_VERSION_NUM >= 140000
	ReplicationSlotAcquire(name, true);
#else
	(void) ReplicationSlotAcquire(name, SAB_Error);
#endif
}

/* Drops the acquired slot. */
static inline void
compat_slot_drop_acquired(void)
{
#if PG_VERSION_NUM >= 190000
	ReplicationSlotDropAcquired(true);
#elif PG_VERSION_NUM >= 170000
	ReplicationSlotDropAcquired();
#else
	/*
	 * It is private here. A temporary slot stays ours when it is released, so
	 * nobody can come between.
	 */
	ReplicationSlot *slot = MyReplicationSlot;
	NameData	name = slot->data.name;

	SpinLockAcquire(&slot->mutex);
	slot->data.persistency = RS_TEMPORARY;
	SpinLockRelease(&slot->mutex);
	ReplicationSlotRelease();
	ReplicationSlotDrop(NameStr(name), true);
#endif
}

/* With the control lock held: the slot of that name, or NULL. */
static inline ReplicationSlot *
compat_slot_find(const char *name)
{
#if PG_VERSION_NUM >= 140000
	return SearchNamedReplicationSlot(name, false);
#else
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];

		if (slot->in_use && strcmp(name, NameStr(slot->data.name)) == 0)
			return slot;
	}
	return NULL;
#endif
}

/* With the slot's spinlock held: the process that has it, or 0. */
static inline pid_t
compat_slot_active_pid(const ReplicationSlot *slot)
{
#if PG_VERSION_NUM >= 190000
	return slot->active_proc == INVALID_PROC_NUMBER ? 0 : GetPGProcByNumber(slot->active_proc)->pid;
#else
	return slot->active_pid;
#endif
}

/* Why the server will not decode from it any more, as its view says it; or NULL. */
static inline const char *
compat_slot_invalidated(const ReplicationSlotPersistentData *data)
{
#if PG_VERSION_NUM >= 180000
	return data->invalidated == RS_INVAL_NONE ? NULL : GetSlotInvalidationCauseName(data->invalidated);
#elif PG_VERSION_NUM >= 160000
	switch (data->invalidated)
	{
		case RS_INVAL_NONE:
			return NULL;
		case RS_INVAL_WAL_REMOVED:
			return "wal_removed";
		case RS_INVAL_HORIZON:
			return "rows_removed";
		case RS_INVAL_WAL_LEVEL:
			return "wal_level_insufficient";
	}
	return "unknown";
#else
	if (data->invalidated_at != InvalidXLogRecPtr && data->restart_lsn == InvalidXLogRecPtr)
		return "wal_removed";
	return NULL;
#endif
}

/* Whether slots can decode prepared transactions here. */
#define COMPAT_HAS_TWO_PHASE (PG_VERSION_NUM >= 140000)

/*
 * Whether such a slot may have no two_phase_at: ALTER_REPLICATION_SLOT turns it on
 * without one (slot.c, ReplicationSlotAlter), and then whatever was prepared before
 * counts as sent. Before 18 whatever turns it on for a consumer sets the position too.
 */
#define COMPAT_TWO_PHASE_AT_MAY_BE_EMPTY (PG_VERSION_NUM >= 180000)

static inline bool
compat_slot_two_phase(const ReplicationSlotPersistentData *data)
{
#if PG_VERSION_NUM >= 140000
	return data->two_phase;
#else
	return false;
#endif
}

static inline XLogRecPtr
compat_slot_two_phase_at(const ReplicationSlotPersistentData *data)
{
#if PG_VERSION_NUM >= 140000
	return data->two_phase_at;
#else
	return InvalidXLogRecPtr;
#endif
}

/* This backend's own xmin, of all the snapshots that it holds. */
#include "storage/proc.h"

static inline TransactionId
compat_own_xmin(void)
{
#if PG_VERSION_NUM >= 140000
	return MyProc->xmin;
#else
	return MyPgXact->xmin;
#endif
}

static inline void
compat_slot_set_two_phase(ReplicationSlotPersistentData *data, bool two_phase, XLogRecPtr at)
{
#if PG_VERSION_NUM >= 140000
	data->two_phase = two_phase;
	data->two_phase_at = at;
#endif
}

/* Whether the server's own worker is to copy it to standbys. */
static inline bool
compat_slot_failover(const ReplicationSlotPersistentData *data)
{
#if PG_VERSION_NUM >= 170000
	return data->failover;
#else
	return false;
#endif
}

/* A mirror is ours and not the worker's: it says so too. */
static inline void
compat_slot_clear_failover(ReplicationSlotPersistentData *data)
{
#if PG_VERSION_NUM >= 170000
	data->failover = false;
#endif
}

/* Whether it is such a copy: the worker's, never to be touched. */
static inline bool
compat_slot_synced(const ReplicationSlotPersistentData *data)
{
#if PG_VERSION_NUM >= 170000
	return data->synced != 0;
#else
	return false;
#endif
}

#endif							/* SLOTKEEPER_COMPAT_H */
