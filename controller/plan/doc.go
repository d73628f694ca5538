// Package plan holds every safety rule as a pure function on plain data:
// Decide turns what was observed and remembered into steps, Settle turns the
// steps' outcomes into verdicts, conditions and the next memory.
//
// It may import cluster and the standard library, but never context, os, net,
// log or the clock: time is an argument.
package plan
