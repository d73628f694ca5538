// Package lab runs real PostgreSQL servers on the local machine, loads them
// with writers, streams from their logical slots and accounts for every row:
// the ground on which the demo and the failover tests stand.
//
// A Cluster is one temporary folder with its servers; closing it stops them
// and removes the folder, and servers stop by themselves when the process that
// started them dies. An Etcd is likewise a folder with the members of an etcd
// cluster, and a Link is a network that can be cut. The lab knows nothing of how
// slotkeeper works: it takes the controller as a separate process and looks at
// its status from outside, as an operator would.
//
// The package runs on Linux: it finds a server's processes in /proc. It may
// import cluster of this project. Only cmd, test/ and the tests of cluster/etcd
// may import it.
package lab
