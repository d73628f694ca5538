// Package output writes the results of commands: as a table for people, and as
// JSON, YAML or tab-separated values for programs. Results go to standard
// output and nothing else does; colours only to a terminal.
//
// It may import the table and YAML libraries. It knows nothing of slots.
package output
