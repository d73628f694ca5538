package cluster

import (
	"fmt"
	"strconv"
)

// XID is a 32-bit transaction identifier. XIDs are circular: of two normal ones
// a precedes b when int32(a-b) is negative (PostgreSQL's transam.c,
// TransactionIdPrecedes). 0 (invalid), 1 (bootstrap) and 2 (frozen) are special
// and stand in no order.
type XID uint32

// FirstNormalXID is the lowest XID that a transaction can have.
const FirstNormalXID XID = 3

// Normal reports whether x is a transaction's, not one of the special values.
func (x XID) Normal() bool { return x >= FirstNormalXID }

// Precedes reports whether a is before b in the circular order. It is false
// when either is special.
func (x XID) Precedes(b XID) bool {
	return x.Normal() && b.Normal() && int32(x-b) < 0
}

// NotAfter reports whether x is b or before it. It is false when either is
// special: what is no XID protects nothing.
func (x XID) NotAfter(b XID) bool {
	return x.Normal() && b.Normal() && int32(x-b) <= 0
}

// Age is how many transactions x is before next; 0 where x is not before it, or
// either is special.
func (x XID) Age(next XID) int64 {
	if !x.Precedes(next) {
		return 0
	}
	return int64(next - x)
}

// OldestXID gives the oldest normal one of xs, absent where there is none.
// What must be kept for several slots is their oldest catalog_xmin.
func OldestXID(xs ...XID) Opt[XID] {
	var oldest Opt[XID]
	for _, x := range xs {
		if x.Normal() && (!oldest.OK || x.Precedes(oldest.V)) {
			oldest = Some(x)
		}
	}
	return oldest
}

// ParseXID reads the decimal form of 32 bits.
func ParseXID(s string) (XID, error) {
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("parsing transaction id %q: want a decimal number of 32 bits", s)
	}
	return XID(v), nil
}

func (x XID) String() string { return strconv.FormatUint(uint64(x), 10) }
