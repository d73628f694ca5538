// Package gate decides whether a standby may be promoted: are the slots there
// that consumers will come for, is each of them proven, and if not, is there
// another node that would serve them and that the cluster manager would take?
//
// It is pure: facts in, a decision with one line of reason out. It imports
// cluster, controller/plan and controller/status, and never context, os, net,
// log or the clock.
package gate
