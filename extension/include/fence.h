/*
 * fence.h
 *		Between the fence's file and the decision who may write.
 */
#ifndef SLOTKEEPER_FENCE_H
#define SLOTKEEPER_FENCE_H

#include "slotkeeper.h"

#define FENCE_PATH "pg_replslot/slotkeeper.fence"

/* How long a call waits for another one that is writing here. */
#define FENCE_WAIT_MS 500

typedef enum FenceLock
{
	FENCE_LOCKED,
	FENCE_MISSING,				/* only without create */
	FENCE_BUSY
} FenceLock;

extern FenceLock fence_lock(bool create, int *lock);

/* Reads the file; result is empty unless TEXTFILE_OK. */
extern TextFileState fence_load(Fence *result);

/* --- debris.c: with the fence locked, once in a session ------------------- */
extern void debris_remove(void);

/* Replaces the file with a new one, which *lock holds from the first moment. */
extern void fence_store(const Fence *fence, int *lock);

#endif							/* SLOTKEEPER_FENCE_H */
