package config

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// checkMode keeps libpq's rule for private keys: a file of one's own must be
// readable by its owner only; one of root's may be readable by its group.
func checkMode(name string, info fs.FileInfo) error {
	mode := info.Mode().Perm()
	forbidden := fs.FileMode(0o077)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == 0 {
		forbidden = 0o037
	}
	if mode&forbidden != 0 {
		return wrongf("chmod 0600 it", "%s has mode %04o, so others may read or change it", name, mode)
	}
	return nil
}

// ReadPassword gives the first line of a password file. The file must be a
// regular one that others cannot read. Its content is never part of the error.
func ReadPassword(key, name string) (string, error) {
	if err := checkFile(name, true); err != nil {
		return "", &Error{[]Problem{problemOf("", key, err)}}
	}
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", key, err)
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading %s: %w", key, err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", &Error{[]Problem{{Key: key, Text: fmt.Sprintf("the first line of %s is empty", name), Want: "write the password there"}}}
	}
	return line, nil
}
