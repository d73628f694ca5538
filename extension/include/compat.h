/*
 * compat.h
 *		Everything that differs between PostgreSQL's majors, and nothing else.
 */
#ifndef SLOTKEEPER_COMPAT_H
#define SLOTKEEPER_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 160000
#error "slotkeeper: this major of PostgreSQL is not supported yet"
#endif

/*
 * The snapshot file's layout. Up to 17 the builder's struct is private to
 * snapbuild.c (from 18 on it is in snapbuild_internal.h), so its shape is
 * described here, one description per major. The file is a header of four
 * uint32, the builder as it lies in memory with its pointers cleared, and
 * committed_xcnt transaction ids. The checksum covers all that follows it.
 *
 * 15: snapbuild.c, struct SnapBuild and SnapBuildOnDisk, version 4.
 */
#include "replication/reorderbuffer.h"
#include "replication/snapbuild.h"
#include "utils/palloc.h"
#include "utils/snapshot.h"

#define COMPAT_SNAPSHOT_MAGIC	0x51A1E001
#define COMPAT_SNAPSHOT_VERSION	4

typedef struct CompatSnapBuild
{
	SnapBuildState state;
	MemoryContext context;
	TransactionId xmin;
	TransactionId xmax;
	XLogRecPtr	start_decoding_at;
	XLogRecPtr	two_phase_at;
	TransactionId initial_xmin_horizon;
	bool		building_full_snapshot;
	Snapshot	snapshot;
	XLogRecPtr	last_serialized_snapshot;
	ReorderBuffer *reorder;
	TransactionId next_phase_at;
	struct
	{
		size_t		xcnt;
		size_t		xcnt_space;
		bool		includes_all_transactions;
		TransactionId *xip;
	}			committed;
} CompatSnapBuild;

typedef struct CompatSnapshotHeader
{
	uint32		magic;
	uint32		checksum;		/* CRC-32C of everything after it */
	uint32		version;
	uint32		length;			/* of the whole file */
} CompatSnapshotHeader;

/*
 * Slots. 16 and 17 give ReplicationSlotPersistentData other fields, 18 gives
 * ReplicationSlotAcquire a third argument, 17 and 19 give ReplicationSlotCreate
 * more of them, and 19 replaces active_pid.
 */
#include "access/transam.h"
#include "funcapi.h"
#include "port/pg_crc32c.h"
#include "replication/slot.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

/* slot.c: ReplicationSlotOnDisk. The checksum covers all from version on. */
#define COMPAT_SLOT_MAGIC	0x1051CA1
#define COMPAT_SLOT_VERSION	2

typedef struct CompatSlotOnDisk
{
	uint32		magic;
	pg_crc32c	checksum;
	uint32		version;
	uint32		length;			/* of slotdata */
	ReplicationSlotPersistentData slotdata;
} CompatSlotOnDisk;

static inline void
compat_slot_create(const char *name, bool logical, bool two_phase)
{
	ReplicationSlotCreate(name, logical, RS_TEMPORARY, two_phase);
}

static inline void
compat_slot_acquire(const char *name)
{
	ReplicationSlotAcquire(name, true);
}

static inline pid_t
compat_slot_active_pid(const ReplicationSlot *slot)
{
	return slot->active_pid;
}

/*
 * Drops the acquired slot. ReplicationSlotDropAcquired is private before 17; a
 * temporary slot stays ours when it is released, so nobody can come between.
 */
static inline void
compat_slot_drop_acquired(void)
{
	ReplicationSlot *slot = MyReplicationSlot;
	NameData	name = slot->data.name;

	SpinLockAcquire(&slot->mutex);
	slot->data.persistency = RS_TEMPORARY;
	SpinLockRelease(&slot->mutex);
	ReplicationSlotRelease();
	ReplicationSlotDrop(NameStr(name), true);
}

/* Why the server will not decode from it any more, in the words of 17; or NULL. */
static inline const char *
compat_slot_invalidated(const ReplicationSlotPersistentData *data)
{
	if (data->invalidated_at != InvalidXLogRecPtr &&
		data->restart_lsn == InvalidXLogRecPtr)
		return "wal_removed";
	return NULL;
}

/* An invalidated slot that gets a restart_lsn again is a slot like any other. */
static inline void
compat_slot_clear_invalidated(ReplicationSlotPersistentData *data)
{
	data->invalidated_at = InvalidXLogRecPtr;
}

/* The oldest transaction id that any database still has; 17 renames the struct. */
static inline TransactionId
compat_oldest_xid(void)
{
	TransactionId oldest;

	LWLockAcquire(XidGenLock, LW_SHARED);
	oldest = ShmemVariableCache->oldestXid;
	LWLockRelease(XidGenLock);
	return oldest;
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
compat_materialize(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
}

#endif							/* SLOTKEEPER_COMPAT_H */
