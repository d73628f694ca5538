/*
 * clock.c
 *		For tests: a clock that is wrong by so many seconds as the file says that
 *		$CLOCK names. Preloaded into a server.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

int
gettimeofday(struct timeval *now, void *zone)
{
	static int	(*real) (struct timeval *, void *) = NULL;
	FILE	   *file = fopen(getenv("CLOCK"), "r");
	long		wrong = 0;
	int			result;

	if (real == NULL)
		real = (int (*) (struct timeval *, void *)) dlsym(RTLD_NEXT, "gettimeofday");
	if (file != NULL)
	{
		if (fscanf(file, "%ld", &wrong) != 1)
			wrong = 0;
		fclose(file);
	}
	result = real(now, zone);
	now->tv_sec += wrong;
	return result;
}
