/*
 * fault.c
 *		For tests: a disk that is full for some files. Preloaded into a server;
 *		creating or renaming onto a path that ends with the text in the file that
 *		$FAULT names fails with ENOSPC. With a ! before that text it hangs there,
 *		and the process leaves its id in the file whose name has .pid after that.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
hang(const char *name)
{
	char		path[1024];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s.pid", name);
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
	const char *name = getenv("FAULT");
	char		line[256];
	const char *suffix = line;
	FILE	   *file = name ? fopen(name, "r") : NULL;
	size_t		len;

	if (file == NULL)
		return 0;
	if (fgets(line, sizeof(line), file) == NULL)
		line[0] = '\0';
	fclose(file);
	if (line[0] == '!')
		suffix++;
	len = strcspn(suffix, "\n");
	if (len == 0 || strlen(path) < len || strncmp(path + strlen(path) - len, suffix, len) != 0)
		return 0;
	if (suffix != line)
		hang(name);
	errno = ENOSPC;
	return 1;
}

int
open(const char *path, int flags,...)
{
	static int	(*real) (const char *, int,...);
	mode_t		mode = 0;
	va_list		args;

	if (real == NULL)
		real = (int (*) (const char *, int,...)) dlsym(RTLD_NEXT, "open");
	if (flags & O_CREAT)
	{
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
		if (is_full_for(path))
			return -1;
	}
	return real(path, flags, mode);
}

int
rename(const char *from, const char *to)
{
	static int	(*real) (const char *, const char *);

	if (real == NULL)
		real = (int (*) (const char *, const char *)) dlsym(RTLD_NEXT, "rename");
	return is_full_for(to) ? -1 : real(from, to);
}
