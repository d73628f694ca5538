// Package topology holds tests of the ways in which servers stand together and
// change places: many standbys side by side, cascades, copies and clones,
// promotions back and forth, primaries that come back.
//
// Only its tests have content; they may import what package harness may.
package topology
