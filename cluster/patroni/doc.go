// Package patroni knows a cluster that Patroni manages: who is in it, who leads,
// and which slots Patroni leaves alone, from the keys that it writes to etcd; and
// it asks Patroni's REST API for what only Patroni may do. It never writes a key.
//
// A View is what the keys say at one moment, made by Parse, which is pure: every
// field as Patroni itself reads it (the source of each quirk is Patroni's Python,
// patroni/dcs/__init__.py, global_config.py, tags.py, postgresql/slots.py), of
// versions 3.0 to 4.1. What cannot be read is a problem of that key and of nothing
// else. Source follows the keys and gives the controller its topology; REST is for
// `doctor`, the gate and switchovers.
//
// The package may import cluster. Who connects to etcd gives it the keys (Keys).
package patroni
