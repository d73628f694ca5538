// Package etcd keeps what several controllers must agree on: who leads, the
// fencing epoch, and the ledger. It also runs the embedded server for those who
// have no etcd of their own.
//
// Every key lies under <prefix>/<scope>/. Requests are bounded in time, reads
// are linearizable, and every write of a leader is a transaction that compares
// the create revision of the leader key with its epoch. DESIGN.md in this
// folder says why it is built so.
//
// The package may import cluster, the etcd client and server, and hclog; never
// the controller or anything that talks to PostgreSQL.
package etcd
