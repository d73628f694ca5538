/*
 * row.h
 *		A composite argument, taken apart and looked at column by column.
 */
#ifndef SLOTKEEPER_ROW_H
#define SLOTKEEPER_ROW_H

#include "slotkeeper.h"

/* A composite value taken apart; what names it in messages. */
typedef struct Row
{
	const char *what;
	const char *const *fields;
	Datum		values[16];
	bool		nulls[16];
} Row;

/*
 * ERROR unless the type is as this library knows it: somebody may have altered
 * it. types[i] Invalid: any composite.
 */
extern void row_type_check(TupleDesc desc, const char *what, const Oid *types, int n);

/* ERROR 22023 that names the column. */
extern void row_bad_value(const char *what, const char *field, const char *detail);

/* With row_type_check. */
extern void row_open(Row *row, Datum composite, const char *what, const char *const *fields, const Oid *types, int n);

/* Column i; ERROR 22004 where it is NULL, 22023 where it is not what its kind is. */
extern Datum row_get(const Row *row, int i);
extern char *row_text(const Row *row, int i);
extern uint64 row_uint64(const Row *row, int i);
extern TransactionId row_xid(const Row *row, int i);
extern XLogRecPtr row_lsn(const Row *row, int i);
extern void row_name(const Row *row, int i, NameData *result);
extern void row_incarnation(const Row *parent, int i, Incarnation *result);

#endif							/* SLOTKEEPER_ROW_H */
