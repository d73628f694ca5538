// Package cluster holds every type that crosses a package border: positions
// (LSN, XID, Timeline), slots, nodes, markers, fences, members, and the changes
// and outcomes that travel between the controller and the extension.
//
// The types are plain data with no behaviour beyond parsing, formatting and
// ordering. The package may import nothing but the standard library.
package cluster
