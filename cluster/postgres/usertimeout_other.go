//go:build !linux

package postgres

import "syscall"

// Only Linux has TCP_USER_TIMEOUT; elsewhere keepalives and deadlines do.
func setUserTimeout(_, _ string, _ syscall.RawConn) error { return nil }
