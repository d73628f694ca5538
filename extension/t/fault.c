/*
 * fault.c
 *		For tests: a disk that is full for some files. Preloaded into a server;
 *		creating or renaming onto a path that ends with the text in the file that
 *		$FAULT names fails with ENOSPC.
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

static int
is_full_for(const char *path)
{
	const char *name = getenv("FAULT");
	char		suffix[256];
	FILE	   *file = name ? fopen(name, "r") : NULL;
	size_t		len;

	if (file == NULL)
		return 0;
	if (fgets(suffix, sizeof(suffix), file) == NULL)
		suffix[0] = '\0';
	fclose(file);
	len = strcspn(suffix, "\n");
	if (len == 0 || strlen(path) < len || strncmp(path + strlen(path) - len, suffix, len) != 0)
		return 0;
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
