// Package commands tests the command line against real servers: what each
// command prints, changes and ends with, with a daemon beside it and without.
//
// It may import anything of the project but cmd.
package commands
