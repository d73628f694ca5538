// Package static is the source of members for clusters whose nodes are named in
// the configuration. It knows names and connection strings, not roles: who is
// the primary is found by asking the nodes.
//
// The package may import cluster, and pgconn for reading connection strings. It
// connects to nothing.
package static
