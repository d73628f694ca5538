/*
 * debris.c
 *		Temporary files that a killed process of ours has left behind.
 *
 * Nobody reads them, and they are replaced when the same file is written again,
 * but that may be never. A kill ends all sessions, so each session looks once,
 * with the fence locked: then nobody else is writing.
 */
#include "postgres.h"

#include <unistd.h>

#include "storage/fd.h"

#include "fence.h"
#include "proof.h"

static bool looked = false;

static void
remove_file(const char *path)
{
	if (unlink(path) == 0)
		ereport(LOG,
				(errmsg("removed stale file \"%s\"", path)));
}

static void
remove_markers(void)
{
	DIR		   *dir = AllocateDir("pg_replslot");
	struct dirent *entry;
	char		path[MAXPGPATH];

	while ((entry = ReadDir(dir, "pg_replslot")) != NULL)
	{
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "pg_replslot/%s/slotkeeper.tmp", entry->d_name);
		remove_file(path);
	}
	FreeDir(dir);
	remove_file(FENCE_PATH ".tmp");
}

static void
remove_snapshots(void)
{
	size_t		suffix = strlen(SNAPSHOT_TEMPORARY);
	DIR		   *dir = AllocateDir(SNAPSHOT_DIR);
	struct dirent *entry;
	char		path[MAXPGPATH];

	while ((entry = ReadDir(dir, SNAPSHOT_DIR)) != NULL)
	{
		size_t		len = strlen(entry->d_name);

		if (len < suffix || strcmp(entry->d_name + len - suffix, SNAPSHOT_TEMPORARY) != 0)
			continue;
		snprintf(path, sizeof(path), SNAPSHOT_DIR "/%s", entry->d_name);
		remove_file(path);
	}
	FreeDir(dir);
}

void
debris_remove(void)
{
	if (looked)
		return;
	remove_markers();
	remove_snapshots();
	looked = true;
}
