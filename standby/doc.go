// Package standby is what slotkeeper does on a standby beyond what every node
// answers: making and moving mirrors, and proving them.
//
// It may import cluster and cluster/postgres, and never package primary or the
// controller.
package standby
