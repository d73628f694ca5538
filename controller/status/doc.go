// Package status holds the one Status document behind the CLI, the API, the
// page, the metrics and the alerts, and the documents of the ledger. Both are
// built from what a cycle observed, remembered and settled.
//
// It is pure: it may import cluster and controller/plan, never context, os,
// net, log or the clock.
package status
