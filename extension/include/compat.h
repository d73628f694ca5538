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

#endif							/* SLOTKEEPER_COMPAT_H */
