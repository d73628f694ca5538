// Package failover holds tests of the failover scenario itself: that its account
// finds what a bad failover does. The good ones are run by `slotkeeper demo`.
package failover
