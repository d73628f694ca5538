//go:build patroni

// Package patroni holds the tests of slotkeeper beside real Patroni with a real
// etcd. The environment variable SLOTKEEPER_PATRONI says which version of Patroni
// they run: 3.0 (with PostgreSQL 15), 4.0 (17) or 4.1 (18).
package patroni
