/*
 * textfile.c
 *		Small files of key=value lines that end with a checksum.
 *
 * Text, so that an administrator can read with cat what slotkeeper believes.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/pg_crc32c.h"
#include "storage/fd.h"

#include "slotkeeper.h"

#define TEXTFILE_MAX_SIZE 8192
#define TEXTFILE_MAX_LINES 32
#define CRC_KEY "crc32c="

static pg_crc32c
checksum(const char *bytes, size_t len)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, bytes, len);
	FIN_CRC32C(crc);
	return crc;
}

/*
 * The file's bytes, NUL-terminated; NULL where there is none. One that cannot be
 * read is damaged, not an error: it must not hide the other slots.
 */
static TextFileState
read_whole(const char *path, char **bytes, size_t *len)
{
	/* O_NONBLOCK: whatever else stands under that name, never wait for it. */
	int			fd = OpenTransientFile(path, O_RDONLY | O_NONBLOCK | PG_BINARY);
	ssize_t		n;

	if (fd < 0)
		return errno == ENOENT ? TEXTFILE_ABSENT : TEXTFILE_DAMAGED;
	*bytes = palloc(TEXTFILE_MAX_SIZE + 1);
	n = read(fd, *bytes, TEXTFILE_MAX_SIZE);
	CloseTransientFile(fd);
	if (n < 0)
		return TEXTFILE_DAMAGED;
	*len = n;
	(*bytes)[n] = '\0';
	return n == 0 ? TEXTFILE_ABSENT : TEXTFILE_OK;
}

/* Cuts the checksum line off; false where it is missing or wrong. */
static bool
checksum_holds(char *bytes, size_t len)
{
	size_t		tail = strlen(CRC_KEY) + 8 + 1;
	char		expected[32];

	if (len <= tail || strlen(bytes) != len || bytes[len - tail - 1] != '\n')
		return false;
	snprintf(expected, sizeof(expected), CRC_KEY "%08X\n", checksum(bytes, len - tail));
	if (strcmp(bytes + len - tail, expected) != 0)
		return false;
	bytes[len - tail] = '\0';
	return true;
}

TextFileState
textfile_read(const char *path, const char *title, TextFile *result)
{
	size_t		len;
	char	   *line;
	char	   *bytes;
	TextFileState state = read_whole(path, &bytes, &len);

	memset(result, 0, sizeof(*result));
	if (state != TEXTFILE_OK)
		return state;
	if (!checksum_holds(bytes, len))
		return TEXTFILE_DAMAGED;

	line = bytes + strlen(title);
	if (strncmp(bytes, title, strlen(title)) != 0 || *line != '\n')
		return TEXTFILE_DAMAGED;
	line++;
	result->keys = palloc(sizeof(char *) * TEXTFILE_MAX_LINES);
	result->values = palloc(sizeof(char *) * TEXTFILE_MAX_LINES);
	while (*line != '\0')
	{
		char	   *end = strchr(line, '\n');
		char	   *equals = strchr(line, '=');

		if (end == NULL || equals == NULL || equals > end || result->n == TEXTFILE_MAX_LINES)
			return TEXTFILE_DAMAGED;
		*end = *equals = '\0';
		result->keys[result->n] = line;
		result->values[result->n++] = equals + 1;
		line = end + 1;
	}
	return TEXTFILE_OK;
}

const char *
textfile_get(const TextFile *file, const char *key)
{
	for (int i = 0; i < file->n; i++)
		if (strcmp(file->keys[i], key) == 0)
			return file->values[i];
	return NULL;
}

bool
textfile_get_uint64(const TextFile *file, const char *key, uint64 *value)
{
	const char *text = textfile_get(file, key);
	char	   *end;

	if (text == NULL || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtou64(text, &end, 10);
	return errno == 0 && *end == '\0';
}

bool
textfile_get_int64(const TextFile *file, const char *key, int64 *value)
{
	const char *text = textfile_get(file, key);
	char	   *end;

	if (text == NULL || !(*text == '-' || (*text >= '0' && *text <= '9')))
		return false;
	errno = 0;
	*value = strtoi64(text, &end, 10);
	return errno == 0 && *end == '\0';
}

void
textfile_begin(StringInfo buf, const char *title)
{
	initStringInfo(buf);
	appendStringInfo(buf, "%s\n", title);
}

void
textfile_put(StringInfo buf, const char *key, const char *fmt,...)
{
	char		value[1024];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(value, sizeof(value), fmt, args);
	va_end(args);
	Assert(strchr(value, '\n') == NULL);
	appendStringInfo(buf, "%s=%s\n", key, value);
}

static void
write_or_fail(int fd, const char *path, const char *bytes, int len)
{
	errno = 0;
	if (write(fd, bytes, len) == len && pg_fsync(fd) == 0)
		return;

	/* a short write is a full disk */
	if (errno == 0)
		errno = ENOSPC;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not write file \"%s\": %m", path)));
}

/* Into the empty file at tmppath, and from there to path. */
static void
write_and_rename(StringInfo buf, int fd, const char *tmppath, const char *path, int *locked_fd)
{
	write_or_fail(fd, tmppath, buf->data, buf->len);
	if (locked_fd != NULL)
	{
		/* nobody else can have it open yet, so this does not wait */
		if (flock(fd, LOCK_EX | LOCK_NB) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not lock file \"%s\": %m", tmppath)));
		*locked_fd = fd;
	}
	else
		CloseTransientFile(fd);
	(void) durable_rename(tmppath, path, ERROR);
}

void
textfile_write(StringInfo buf, const char *path, int *locked_fd)
{
	char		tmppath[MAXPGPATH];
	int			fd;

	appendStringInfo(buf, CRC_KEY "%08X\n", checksum(buf->data, buf->len));
	snprintf(tmppath, sizeof(tmppath), "%s.tmp", path);

	/* what a crash left behind is of no use to anyone */
	if (unlink(tmppath) != 0 && errno != ENOENT)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", tmppath)));
	fd = OpenTransientFile(tmppath, O_RDWR | O_CREAT | O_EXCL | PG_BINARY);
	if (fd < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not create file \"%s\": %m", tmppath)));
	PG_TRY();
	{
		write_and_rename(buf, fd, tmppath, path, locked_fd);
	}
	PG_CATCH();
	{
		/* the descriptor goes with the (sub)transaction */
		unlink(tmppath);
		PG_RE_THROW();
	}
	PG_END_TRY();
}
