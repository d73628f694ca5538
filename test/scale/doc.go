// Package scale tries slotkeeper with a thousand logical slots on real servers:
// what an unchanged cycle reads, writes and keeps in memory, and as benchmarks
// what it costs.
//
// Like all of test/ it may import every package of the module; nothing imports it.
package scale
