// Package chaos puts a primary, four standbys (one of them cascading), an etcd of
// three members and two controllers under random faults and a busy load, and
// checks after each that what slotkeeper promises holds. `make chaos` runs it for
// half an hour; as an ordinary test it is one short round.
//
// What is checked is looked at past slotkeeper: positions are read from the servers
// by a superuser and from their folders, what a slot owes is read from the WAL, and
// what was called SAFE is decoded on a promoted copy of that standby.
package chaos
