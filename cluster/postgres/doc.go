// Package postgres holds the sessions to one PostgreSQL node: their limits and
// settings, the check that the right server answers, one complete read of the
// node, and the calls of the slotkeeper extension that primaries and standbys
// share. Package primary and package standby build on it.
//
// Nothing here waits without a bound: connecting, each query and closing end by
// their own limit or by the caller's context, also against a server that
// accepts connections and never answers.
//
// It may import cluster, pgx and the standard library.
package postgres
