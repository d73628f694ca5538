// Package controller is the loop that keeps mirrors: observe, decide, apply,
// settle, publish. One goroutine owns the state; everything it knows between
// two cycles is plan.Memory, the ledger's last writes and one session per node.
// cycle.go is one turn, term.go the turns under one lease, requests.go what other
// goroutines may ask of it.
//
// It imports cluster, its own pure children and hclog. Servers and etcd reach
// it through the small interfaces of ports.go, which cmd fills.
package controller
