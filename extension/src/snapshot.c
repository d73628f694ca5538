/*
 * snapshot.c
 *		The snapshot files of logical decoding: read, validate, install.
 *
 * A snapshot tells a decoder that starts exactly there what core's snapbuild.c
 * had learned about transactions before that point. Bytes that come from
 * elsewhere are treated as hostile: nothing is believed before the lengths agree
 * and the checksum fits.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/transam.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "utils/memutils.h"

#include "compat.h"
#include "proof.h"

#define FIXED_SIZE (sizeof(CompatSnapshotHeader) + sizeof(CompatSnapBuild))

/* As core names them; the position alone identifies a snapshot. */
static void
snapshot_path(char *path, XLogRecPtr at)
{
	snprintf(path, MAXPGPATH, SNAPSHOT_DIR "/%X-%X.snap", LSN_FORMAT_ARGS(at));
}

const char *
snapshot_state_name(SnapshotState state)
{
	switch (state)
	{
		case SNAPSHOT_ABSENT:
			return "absent";
		case SNAPSHOT_VALID:
			return "valid";
		case SNAPSHOT_BAD:
			return "bad";
	}
	return NULL;
}

static bool
refuse(char **why, char *sentence)
{
	if (why != NULL)
		*why = sentence;
	else
		pfree(sentence);
	return false;
}

static bool
header_valid(const CompatSnapshotHeader *header, const char *bytes, Size len, char **why)
{
	pg_crc32c	crc;
	Size		skipped = offsetof(CompatSnapshotHeader, version);

	if (header->magic != COMPAT_SNAPSHOT_MAGIC)
		return refuse(why, psprintf("the snapshot's magic number is %08X instead of %08X",
									header->magic, COMPAT_SNAPSHOT_MAGIC));
	if (header->version != COMPAT_SNAPSHOT_VERSION)
		return refuse(why, psprintf("the snapshot's version is %u, this server reads version %u",
									header->version, COMPAT_SNAPSHOT_VERSION));
	if (header->length != len)
		return refuse(why, psprintf("the snapshot says that it has %u bytes, but has %zu",
									header->length, len));

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, bytes + skipped, len - skipped);
	FIN_CRC32C(crc);
	if (!EQ_CRC32C(crc, header->checksum))
		return refuse(why, psprintf("the snapshot's checksum is %08X instead of %08X",
									header->checksum, crc));
	return true;
}

/* By division and subtraction: the counts are not to be believed yet. */
static bool
counts_fit(const CompatSnapBuild *builder, Size rest)
{
	Size		all = rest / sizeof(TransactionId);

	return rest % sizeof(TransactionId) == 0 && builder->committed.xcnt <= all &&
		compat_snapshot_running(builder) == all - builder->committed.xcnt;
}

/*
 * What core's SnapBuildRestore and the code after it take for granted. The counts
 * were compared with the length, so no multiplication can overflow.
 */
static bool
builder_valid(const CompatSnapBuild *builder, const char *xids, char **why)
{
	if (builder->state != SNAPBUILD_CONSISTENT)
		return refuse(why, psprintf("the snapshot's builder state is %d, not consistent",
									(int) builder->state));
	if (!TransactionIdIsNormal(builder->xmin) || !TransactionIdIsNormal(builder->xmax))
		return refuse(why, psprintf("the snapshot's xmin %u or xmax %u is not a normal transaction id",
									builder->xmin, builder->xmax));
	for (size_t i = 0; i < builder->committed.xcnt + compat_snapshot_running(builder); i++)
	{
		TransactionId xid;

		memcpy(&xid, xids + i * sizeof(xid), sizeof(xid));
		if (!TransactionIdIsNormal(xid))
			return refuse(why, psprintf("the snapshot lists %u as a transaction", xid));
	}
	return true;
}

/*
 * The bytes do not say where they belong. But a decoder notes where it last wrote
 * or met a file, which is before the file in hand (SnapBuildSerialize): bytes
 * that were taken at a later position give themselves away.
 */
static bool
position_valid(const CompatSnapBuild *builder, XLogRecPtr at, char **why)
{
	if (builder->last_serialized_snapshot >= at)
		return refuse(why, psprintf("the snapshot was taken after %X/%X, at a later position than this one",
									LSN_FORMAT_ARGS(builder->last_serialized_snapshot)));
	return true;
}

bool
snapshot_bytes_valid(XLogRecPtr at, const char *bytes, Size len, char **why)
{
	CompatSnapshotHeader header;
	CompatSnapBuild builder;

	if (len < FIXED_SIZE)
		return refuse(why, psprintf("a snapshot has %zu bytes at least, this one has %zu",
									FIXED_SIZE, len));

	/* The bytes need not be aligned. */
	memcpy(&header, bytes, sizeof(header));
	memcpy(&builder, bytes + sizeof(header), sizeof(builder));

	if (!header_valid(&header, bytes, len, why))
		return false;
	if (!counts_fit(&builder, len - FIXED_SIZE))
		return refuse(why, psprintf("the snapshot lists %zu committed and %zu running transactions, which does not fit its %zu bytes",
									builder.committed.xcnt, compat_snapshot_running(&builder), len));
	return builder_valid(&builder, bytes + FIXED_SIZE, why) && position_valid(&builder, at, why);
}

/*
 * Reads a whole open file; the descriptor stays open. NULL, with *why, where it
 * is not a regular file, is too large or cannot be read.
 */
static bytea *
read_open_file(int fd, const char *path, char **why)
{
	struct stat st;
	bytea	   *bytes;
	Size		got = 0;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
		st.st_size > (off_t) (MaxAllocSize - VARHDRSZ))
	{
		refuse(why, psprintf("\"%s\" is not a file that a snapshot could be in", path));
		return NULL;
	}

	bytes = palloc(VARHDRSZ + st.st_size);
	SET_VARSIZE(bytes, VARHDRSZ + st.st_size);
	while (got < (Size) st.st_size)
	{
		ssize_t		n = read(fd, VARDATA(bytes) + got, st.st_size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
		{
			if (n < 0)
				refuse(why, psprintf("\"%s\" cannot be read: %m", path));
			else
				refuse(why, psprintf("\"%s\" became shorter while it was read", path));
			pfree(bytes);
			return NULL;
		}
		got += n;
	}
	return bytes;
}

/* VALID here means read, not validated. */
static SnapshotState
read_file(XLogRecPtr at, bytea **bytes, char **why)
{
	char		path[MAXPGPATH];
	int			fd;

	*bytes = NULL;
	snapshot_path(path, at);

	/* O_NONBLOCK: whatever else stands under that name, never wait for it. */
	fd = OpenTransientFile(path, O_RDONLY | O_NONBLOCK | PG_BINARY);
	if (fd < 0)
	{
		if (errno == ENOENT)
		{
			refuse(why, psprintf("there is no file \"%s\"", path));
			return SNAPSHOT_ABSENT;
		}
		refuse(why, psprintf("\"%s\" cannot be opened: %m", path));
		return SNAPSHOT_BAD;
	}
	*bytes = read_open_file(fd, path, why);
	CloseTransientFile(fd);
	return *bytes == NULL ? SNAPSHOT_BAD : SNAPSHOT_VALID;
}

SnapshotState
snapshot_file_state(XLogRecPtr at, char **why)
{
	char		path[MAXPGPATH];
	bytea	   *bytes;
	char	   *flaw;
	SnapshotState state = read_file(at, &bytes, why);

	if (state != SNAPSHOT_VALID)
		return state;
	if (!snapshot_bytes_valid(at, VARDATA(bytes), VARSIZE(bytes) - VARHDRSZ, &flaw))
	{
		snapshot_path(path, at);
		refuse(why, psprintf("\"%s\" is not valid: %s", path, flaw));
		state = SNAPSHOT_BAD;
	}
	pfree(bytes);
	return state;
}

XLogRecPtr
snapshot_first_between(XLogRecPtr after, XLogRecPtr before)
{
	XLogRecPtr	first = InvalidXLogRecPtr;
	DIR		   *dir = AllocateDir(SNAPSHOT_DIR);
	struct dirent *entry;

	while ((entry = ReadDir(dir, SNAPSHOT_DIR)) != NULL)
	{
		char		path[MAXPGPATH];
		uint32		hi,
					lo;
		XLogRecPtr	at;

		if (sscanf(entry->d_name, "%X-%X.snap", &hi, &lo) != 2)
			continue;
		at = ((uint64) hi) << 32 | lo;

		/* a temporary name is not the file's */
		snapshot_path(path, at);
		if (strcmp(path + strlen(SNAPSHOT_DIR "/"), entry->d_name) != 0)
			continue;
		if (at > after && at < before && (XLogRecPtrIsInvalid(first) || at < first))
			first = at;
	}
	FreeDir(dir);
	return first;
}

bytea *
snapshot_file_read(XLogRecPtr at)
{
	bytea	   *bytes;
	char	   *why = NULL;

	if (read_file(at, &bytes, &why) == SNAPSHOT_BAD)
		ereport(ERROR,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("could not read the snapshot at %X/%X", LSN_FORMAT_ARGS(at)),
				 errdetail("%s.", why)));
	return bytes;
}

/* False, with errno, where not all could be written. */
static bool
write_all(int fd, const char *bytes, Size len)
{
	Size		done = 0;

	while (done < len)
	{
		ssize_t		n;

		errno = 0;
		n = write(fd, bytes + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
		{
			/* nothing written without a reason is a full disk */
			if (errno == 0)
				errno = ENOSPC;
			return false;
		}
		done += n;
	}
	return true;
}

static void
write_temporary(const char *path, const char *bytes, Size len)
{
	int			fd;

	fd = OpenTransientFile(path, O_CREAT | O_EXCL | O_WRONLY | PG_BINARY);
	if (fd < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not create file \"%s\": %m", path)));
	if (!write_all(fd, bytes, len))
	{
		int			save_errno = errno;

		CloseTransientFile(fd);
		errno = save_errno;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", path)));
	}
	if (CloseTransientFile(fd) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not close file \"%s\": %m", path)));
}

bool
snapshot_file_install(XLogRecPtr at, const char *bytes, Size len, char **why)
{
	char		path[MAXPGPATH];
	char		temporary[MAXPGPATH];

	if (!snapshot_bytes_valid(at, bytes, len, why))
		return false;
	if (snapshot_file_state(at, NULL) == SNAPSHOT_VALID)
		return true;

	/*
	 * CheckPointSnapBuild parses this form of name, and so removes it like the
	 * file itself once no slot needs that position. The fence is locked: nobody
	 * else writes one. What a kill has left would be in the way.
	 */
	snapshot_path(path, at);
	snprintf(temporary, sizeof(temporary), SNAPSHOT_DIR "/%X-%X.snap" SNAPSHOT_TEMPORARY,
			 LSN_FORMAT_ARGS(at));
	if (unlink(temporary) != 0 && errno != ENOENT)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", temporary)));

	/* durable_rename fsyncs the file first, then its new name and the directory. */
	PG_TRY();
	{
		write_temporary(temporary, bytes, len);
		durable_rename(temporary, path, ERROR);
	}
	PG_CATCH();
	{
		unlink(temporary);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return true;
}
