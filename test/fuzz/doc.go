// Package fuzz tries to break the extension: calls with hostile arguments, kills,
// promotions, rivals and vanishing files, at random moments, on real servers.
//
// Each test has a short form, which go test runs, and a long one, which make fuzz
// runs; both print the seed that repeats their choices. It may import
// cluster/lab and test/harness; nothing imports it.
package fuzz
