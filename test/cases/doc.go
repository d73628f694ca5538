// Package cases holds what went wrong for people, each as a test against real
// servers that carries the case's number: C for what was seen in public, D for
// what was found while designing.
package cases
