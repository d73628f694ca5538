/*
 * sessions.c
 *		Sessions of a standby that are older than its hold.
 *
 * A session remembers up to where catalog rows are of no use to anybody, and what
 * it has once found it believes for good (14 and later). After a promotion one that
 * looked before the hold was there, or while it was further on, removes rows as it
 * comes across them, whatever the slots pin by then. The hold's marker says up to
 * where that reaches (unheld_before) and which sessions it concerns: those that
 * began before held_since. While one of them lives no mirror is made that needs
 * rows which had died by held_from; a mirror that is there has pinned them itself
 * ever since.
 */
#include "postgres.h"

#include <signal.h>

#include "access/transam.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "hold.h"

PG_FUNCTION_INFO_V1(slotkeeper_end_sessions);

/* How many sessions a message names. */
#define NAMED 3

/* Its sessions may be ended by whoever may call this: it opens others at once. */
#define PATRONI "Patroni"

/* A clock that was set back makes sessions begin in the future. */
static bool
is_older(const CompatSession *session, TimestampTz held_since, TimestampTz now)
{
	return session->pid != MyProcPid && (session->start < held_since || session->start > now);
}

typedef struct Found
{
	StringInfoData names;
	int			count;
} Found;

static void
add(Found *found, int pid, const char *what)
{
	if (++found->count > NAMED)
		return;
	appendStringInfo(&found->names, "%s%d", found->count > 1 ? ", " : "", pid);
	if (*what != '\0')
		appendStringInfo(&found->names, " (%s)", what);
}

/* Which processes serve clients, *count of them. */
static int *
clients(int *count)
{
	int			places = compat_clients();
	int		   *pids = palloc(sizeof(int) * (places + 1));

	*count = 0;
	for (int i = 0; i < places; i++)
		if (compat_client(i) != 0)
			pids[(*count)++] = compat_client(i);
	return pids;
}

/*
 * A session that is still starting has no entry (up to 17), and has looked at
 * catalogs by then. One that has just ended has none either.
 */
static void
add_starting(Found *found, const int *pids, int count, const int *listed, int nlisted)
{
	for (int i = 0; i < count; i++)
	{
		bool		has_entry = pids[i] == MyProcPid;

		for (int j = 0; j < nlisted && !has_entry; j++)
			has_entry = listed[j] == pids[i];
		if (!has_entry && BackendPidGetProc(pids[i]) != NULL)
			add(found, pids[i], "starting");
	}
}

/* All that are older than a hold. This one looks anew instead. */
static void
find_older(TimestampTz held_since, Found *found)
{
	TimestampTz now = GetCurrentTimestamp();
	int			nclients;
	int		   *pids = clients(&nclients);
	int			count = compat_sessions();
	int		   *listed = palloc(sizeof(int) * (count + 1));

	compat_forget_horizons();
	found->count = 0;
	initStringInfo(&found->names);
	for (int i = 1; i <= count; i++)
	{
		CompatSession session;

		if (compat_session(i, &session) && is_older(&session, held_since, now))
			add(found, session.pid, session.application);
		listed[i - 1] = session.pid;
	}
	add_starting(found, pids, nclients, listed, count);
}

/*
 * Where the clock was set back, sessions that are there may have begun in the
 * future; they are older than what comes now all the same, also when the clock has
 * caught up with them.
 */
TimestampTz
sessions_all_began_before(void)
{
	TimestampTz result = GetCurrentTimestamp();
	int			count = compat_sessions();

	for (int i = 1; i <= count; i++)
	{
		CompatSession session;

		if (compat_session(i, &session) && session.pid != MyProcPid && session.start >= result)
			result = session.start + 1;
	}
	return result;
}

bool
sessions_endanger(const HoldSeen *hold, TransactionId x, char **which)
{
	Found		found;

	if (!TransactionIdIsNormal(hold->unheld_before) || !TransactionIdPrecedes(x, hold->unheld_before))
		return false;
	find_older(hold->held_since, &found);
	if (found.count > NAMED)
		appendStringInfo(&found.names, " and %d more", found.count - NAMED);
	*which = found.names.data;
	return found.count > 0;
}

bool
sessions_all_held(TimestampTz *since)
{
	Marker		marker;
	Found		older;

	if (!marker_read(HOLD_NAME, &marker) || marker.kind != MARKER_HOLD ||
		!TransactionIdIsNormal(marker.unheld_before) || marker.held_since == DT_NOEND)
		return false;
	find_older(marker.held_since, &older);
	*since = marker.held_since;
	return older.count == 0;
}

/* As pg_terminate_backend: its own role's, and others' by grant, a superuser's never. Patroni's any. */
static bool
may_end(const CompatSession *session, const char *application)
{
	Oid			role = GetUserId();

	if (strcmp(application, PATRONI) == 0 || superuser())
		return true;
	if (superuser_arg(session->role))
		return false;
	return has_privs_of_role(role, session->role) || has_privs_of_role(role, ROLE_PG_SIGNAL_BACKEND);
}

/* "Patroni heartbeat" is of the application Patroni. */
static bool
is_of(const CompatSession *session, const char *application)
{
	size_t		length = strlen(application);

	if (strcmp(application, "*") == 0)
		return true;
	return strncmp(session->application, application, length) == 0 &&
		(session->application[length] == '\0' || session->application[length] == ' ');
}

static void
end_sessions(const Marker *marker, const char *application, Outcome *out)
{
	int			count = compat_sessions();
	TimestampTz now = GetCurrentTimestamp();
	int			ended = 0;

	for (int i = 1; i <= count; i++)
	{
		CompatSession session;

		if (compat_session(i, &session) && is_older(&session, marker->held_since, now) &&
			session.idle && is_of(&session, application) && may_end(&session, application) && kill(session.pid, SIGTERM) == 0)
			ended++;
	}
	if (ended > 0)
		outcome_is(out, "ended", "%d idle sessions of %s that began before " HOLD_NAME " pinned here.", ended, application);
	else
		outcome_is(out, "unchanged", NULL);
}

Datum
slotkeeper_end_sessions(PG_FUNCTION_ARGS)
{
	Fence		fence;
	Refusal		refusal;
	Outcome		out;
	Marker		marker;
	char	   *application;
	int			lock;

	arg_fence(fcinfo, 0, &fence);
	application = PG_ARGISNULL(1) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(1));
	if (*application == '\0' || strlen(application) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("application must be the beginning of an application_name, of 1 to %d bytes", NAMEDATALEN - 1),
				 errhint("For the sessions of everybody give '*'.")));
	require_replication_role();
	outcomes_begin(fcinfo);
	outcome_init(&out, HOLD_NAME);
	if (!fence_enter(&fence, ON_STANDBY, &lock, &refusal))
	{
		outcomes_refuse(fcinfo, &refusal, &out.name, sizeof(Outcome), 1);
		return (Datum) 0;
	}
	if (!marker_is_ours(HOLD_NAME, &fence, &marker) || !TransactionIdIsNormal(marker.unheld_before))
		outcome_is(&out, "unchanged", NULL);
	else
		end_sessions(&marker, application, &out);
	outcome_put(fcinfo, &out);
	fence_leave(lock);
	return (Datum) 0;
}
