// Package switchover decides, step by step, how a planned promotion goes on: may
// it be asked for, is the candidate as far as it should be, has what was asked
// happened, and do all slots survive?
//
// Steps are data: each has a check that says from the facts alone whether it is
// done, what to do next, or that it has come to an end. Nothing but the record in
// etcd is carried from one run of the command to the next; so a run that was killed
// at any step goes on where the facts are, and what was asked is never asked again
// unless it is known not to have happened.
//
// It is pure: facts in, a decision out. It imports cluster, controller/plan and
// controller/status, and never context, os, net, log or the clock.
package switchover
