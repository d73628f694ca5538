/*
 * fault.c
 *		For tests: a disk that is full for some files, and a checkpointer that
 *		stops at a folder. Preloaded into a server; the text in the file that
 *		$FAULT names says what for:
 *
 *		SUFFIX			writing into a file that is made under a path that ends so,
 *						or renaming onto one, fails with ENOSPC
 *		!SUFFIX			who would make such a file hangs, and leaves its process id in
 *						$FAULT.pid
 *		stat SUFFIX		looking at what lies under a path that ends so is not permitted
 *		stop SUFFIX		the checkpointer waits before it looks through a folder whose
 *						path ends so, and makes $FAULT.stopped, until the text changes
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STOP "stop "
#define STAT "stat "
#define MAX_FILES 4096

/* The function that this library stands before. */
#define REAL(name) \
	static __typeof__(&name) real = NULL; \
	if (real == NULL) \
		real = (__typeof__(&name)) dlsym(RTLD_NEXT, #name)

static char full[MAX_FILES];	/* by descriptor */

/* The first line of the file that $FAULT names; empty where there is none. */
static void
read_fault(char *text, size_t size)
{
	const char *name = getenv("FAULT");
	FILE	   *file = name ? fopen(name, "r") : NULL;

	if (file == NULL || fgets(text, size, file) == NULL)
		text[0] = '\0';
	if (file != NULL)
		fclose(file);
	text[strcspn(text, "\n")] = '\0';
}

static int
ends_with(const char *path, const char *suffix)
{
	size_t		len = strlen(suffix);

	return len > 0 && strlen(path) >= len && strcmp(path + strlen(path) - len, suffix) == 0;
}

static void
hang(void)
{
	char		path[4096];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s.pid", getenv("FAULT"));
	if ((file = fopen(path, "w")) != NULL)
	{
		fprintf(file, "%d\n", getpid());
		fclose(file);
	}
	for (;;)
		pause();
}

static int
is_full_for(const char *path)
{
	char		text[256];

	read_fault(text, sizeof(text));
	if (text[0] == '!' && ends_with(path, text + 1))
		hang();
	return strncmp(text, STOP, strlen(STOP)) != 0 && strncmp(text, STAT, strlen(STAT)) != 0 && ends_with(path, text);
}

static int
is_checkpointer(void)
{
	char		title[64] = "";
	FILE	   *file = fopen("/proc/self/cmdline", "r");

	if (file != NULL)
	{
		title[fread(title, 1, sizeof(title) - 1, file)] = '\0';
		fclose(file);
	}
	return strstr(title, "checkpointer") != NULL;
}

static int
stops_at(const char *path)
{
	char		text[256];

	read_fault(text, sizeof(text));
	return strncmp(text, STOP, strlen(STOP)) == 0 && ends_with(path, text + strlen(STOP)) && is_checkpointer();
}

DIR *
opendir(const char *path)
{
	char		stopped[4096];

	REAL(opendir);
	if (stops_at(path))
	{
		snprintf(stopped, sizeof(stopped), "%s.stopped", getenv("FAULT"));
		fclose(fopen(stopped, "w"));
		while (stops_at(path))
			usleep(10000);
	}
	return real(path);
}

int
open(const char *path, int flags,...)
{
	mode_t		mode = 0;
	va_list		args;
	int			is_full = (flags & O_CREAT) && is_full_for(path);
	int			fd;

	REAL(open);
	if (flags & O_CREAT)
	{
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	fd = real(path, flags, mode);
	if (fd >= 0 && fd < MAX_FILES)
		full[fd] = is_full;
	return fd;
}

int
close(int fd)
{
	REAL(close);
	if (fd >= 0 && fd < MAX_FILES)
		full[fd] = 0;
	return real(fd);
}

ssize_t
write(int fd, const void *bytes, size_t len)
{
	REAL(write);
	if (fd >= 0 && fd < MAX_FILES && full[fd])
	{
		errno = ENOSPC;
		return -1;
	}
	return real(fd, bytes, len);
}

int
statx(int dir, const char *path, int flags, unsigned int mask, struct statx *result)
{
	char		text[256];

	REAL(statx);
	read_fault(text, sizeof(text));
	if (strncmp(text, STAT, strlen(STAT)) != 0 || !ends_with(path, text + strlen(STAT)))
		return real(dir, path, flags, mask, result);
	errno = EPERM;
	return -1;
}

int
rename(const char *from, const char *to)
{
	REAL(rename);
	if (!is_full_for(to))
		return real(from, to);
	errno = ENOSPC;
	return -1;
}
