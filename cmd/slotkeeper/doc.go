// Command slotkeeper keeps PostgreSQL's logical replication slots usable across
// a failover: one file per command, and wire.go, which builds what they share.
//
// Results go to standard output and everything else to standard error. The exit
// codes are those of exit.go.
package main
