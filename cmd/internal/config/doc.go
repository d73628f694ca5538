// Package config reads, checks and shows slotkeeper's configuration.
//
// A value comes from a command-line flag, else from the environment
// (SLOTKEEPER_ and the key in capitals, such as SLOTKEEPER_HTTP_LISTEN), else
// from the file, else it is the default. Everything is strict: an unknown key,
// a key given twice, a second document or a value of the wrong type is an
// error, and each error names the place, the key and what would be right. The
// file never holds a password, so nothing that this package prints does.
//
// It may import cluster, cluster/static and the YAML library. It opens no connection.
package config
