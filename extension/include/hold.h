/*
 * hold.h
 *		Between the slot slotkeeper_hold and the function hold().
 */
#ifndef SLOTKEEPER_HOLD_H
#define SLOTKEEPER_HOLD_H

#include "slotkeeper.h"

/* Whether a is a real xid that is not after x in the circular order. */
extern bool xid_not_after(TransactionId a, TransactionId x);

/* A hold that somebody connected to, or that lost its WAL, proves nothing. */
extern bool hold_is_untouched(const SlotLook *look);

/* The later of memory and disk: only that is pinned whatever happens. */
extern TransactionId hold_pinned_by(const SlotLook *look);

/* The rest is for the backend that has the hold in hand. */

/* Sets data and effective catalog_xmin; may be called under the control lock. */
extern void hold_set(TransactionId xid);

/* Recomputes until the aggregate that vacuum looks at has followed. */
extern void hold_publish(void);

/* Moves it on; *why says why it could not be saved. */
extern void hold_raise(TransactionId target, char **why);

/* Saves what the state file does not say yet; *why says why that failed. */
extern void hold_save(char **why);

#endif							/* SLOTKEEPER_HOLD_H */
