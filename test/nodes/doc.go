// Package nodes tests packages cluster/postgres, primary and standby together on
// a real primary and its standbys.
//
// Only its tests have content; they may import everything but the controller.
package nodes
