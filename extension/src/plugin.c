/*
 * plugin.c
 *		Is an output plugin's library installed here, and may it be used? A mirror
 *		whose plugin is missing is found out by its consumer after a failover, too
 *		late.
 *
 * Looks where dfmgr.c would look, and loads nothing.
 */
#include "postgres.h"

#include <sys/stat.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/varlena.h"

#include "slotkeeper.h"

static bool
is_file(const char *dir, const char *name, const char *suffix)
{
	char		path[MAXPGPATH];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s%s%s", dir, *dir ? "/" : "", name, suffix);
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* $libdir stands for the package's library directory, at the beginning only. */
static char *
expand(const char *path)
{
	if (strncmp(path, "$libdir", strlen("$libdir")) == 0)
		return psprintf("%s%s", pkglib_path, path + strlen("$libdir"));
	return pstrdup(path);
}

static bool
in_directory(const char *dir, const char *name)
{
	char	   *expanded = expand(dir);

	return is_file(expanded, name, "") || is_file(expanded, name, DLSUFFIX);
}

bool
plugin_exists(const char *plugin)
{
	char	   *path;

	if (strchr(plugin, '/') != NULL)
	{
		char	   *expanded = expand(plugin);

		return is_file("", expanded, "") || is_file("", expanded, DLSUFFIX);
	}
	path = pstrdup(Dynamic_library_path);
	for (char *save = NULL, *dir = strtok_r(path, ":", &save); dir != NULL;
		 dir = strtok_r(NULL, ":", &save))
		if (in_directory(dir, plugin))
			return true;
	return false;
}

/*
 * From 15.19, and the minors of that day of the other majors, on a plugin must
 * be named in output_plugin_libraries too (logical.c, LoadOutputPlugin). Looked
 * up by name: it is not there in older minors of the same major.
 */
bool
plugin_allowed(const char *plugin)
{
	const char *setting = GetConfigOption("output_plugin_libraries", true, false);
	List	   *names;
	ListCell   *cell;

	if (setting == NULL)
		return true;
	if (!SplitGUCList(pstrdup(setting), ',', &names))
		return false;
	foreach(cell, names)
		if (strcmp((char *) lfirst(cell), plugin) == 0)
			return true;
	return false;
}
