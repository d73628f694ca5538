// Package primary is what slotkeeper reads and does on a primary beyond what
// every node answers: the snapshot files at the positions of slots, the marks on
// the originals, and commands of the replication protocol.
//
// It may import cluster and cluster/postgres, and never package standby or the
// controller.
package primary
