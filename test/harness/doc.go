// Package harness sets a test's scene: a primary with its standbys, the
// controller as a process of its own, the command line, and waits with
// deadlines. Everything in it is real; everything is gone when the test ends.
//
// It may import anything of the project but cmd; only test/ imports it.
package harness
