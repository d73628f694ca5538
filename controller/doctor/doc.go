// Package doctor looks for what would keep slotkeeper from doing its work, or
// make it dear: one check per file, each a pure function over what was observed.
//
// It may import cluster and controller/plan, never context, os, net, log or the
// clock.
package doctor
