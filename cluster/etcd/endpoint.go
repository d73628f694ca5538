package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func endpointFile(dir string) string { return filepath.Join(dir, "endpoint") }
func lockFile(dir string) string     { return filepath.Join(dir, "lock") }

// ReadEndpoint gives the URL of the embedded server that runs on dir. It fails
// with ErrNotRunning when none does, also where a killed one left its file.
func ReadEndpoint(dir string) (string, error) {
	b, err := os.ReadFile(endpointFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w on data_dir %s: there is no endpoint file; is `slotkeeper run` up?", ErrNotRunning, dir)
	}
	if err != nil {
		return "", fmt.Errorf("reading the embedded etcd's address: %w", err)
	}
	held, err := lockHeld(dir)
	if err != nil {
		return "", fmt.Errorf("looking for the process that runs the embedded etcd: %w", err)
	}
	if !held {
		return "", fmt.Errorf("%w on data_dir %s: the endpoint file was left behind by a process that is gone; start `slotkeeper run`", ErrNotRunning, dir)
	}
	return strings.TrimSpace(string(b)), nil
}

// writeEndpoint writes the file whole or not at all, readable by its owner only.
func writeEndpoint(dir, endpoint string) error {
	tmp, err := os.CreateTemp(dir, ".endpoint-*") // 0600
	if err != nil {
		return fmt.Errorf("writing the endpoint file: %w", err)
	}
	_, err = tmp.WriteString(endpoint + "\n")
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), endpointFile(dir))
	}
	if err != nil {
		return fmt.Errorf("writing the endpoint file: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}

func removeEndpoint(dir string) error {
	if err := os.Remove(endpointFile(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the endpoint file: %w", err)
	}
	return nil
}

// lockDir takes dir's lock, which the kernel gives back when the process ends,
// however it ends. It tries for a second: a reader's look takes the lock for an
// instant, and a server that is going down is soon gone.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(lockFile(dir), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening data_dir's lock: %w", err)
	}
	for try := 0; ; try++ {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || try == 20 || !wait(ctx, 50*time.Millisecond) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s: %s runs an embedded etcd there; stop it, or give this one a data_dir of its own",
			ErrDataDirInUse, dir, lockOwner(f))
		return nil, errors.Join(err, f.Close())
	}
	if err == nil {
		err = writeOwner(f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking data_dir %s: %w", dir, err), f.Close())
	}
	return f, nil
}

func writeOwner(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

func lockOwner(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0) // an empty file means: not written yet
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return "process " + pid
	}
	return "another process"
}

// lockHeld reports whether a process holds dir's lock.
func lockHeld(dir string) (bool, error) {
	f, err := os.Open(lockFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // read-only: closing it only gives the shared lock back
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
