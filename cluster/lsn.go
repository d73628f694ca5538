package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a position in the write-ahead log, in bytes. LSNs are ordered as
// unsigned 64-bit numbers, also across the 4 GiB boundary of the text form.
// Zero is PostgreSQL's InvalidXLogRecPtr and is never a position.
type LSN uint64

// ParseLSN reads PostgreSQL's text form: two hexadecimal numbers of one to
// eight digits divided by a slash ("0/3000060"; 19 prints the second one with
// leading zeros). Nothing else is accepted: no sign, no blank, no prefix.
func ParseLSN(s string) (LSN, error) {
	hi, lo, ok := strings.Cut(s, "/")
	if !ok {
		return 0, fmt.Errorf("parsing LSN %q: want two hexadecimal numbers divided by a slash, such as 0/3000060", s)
	}
	h, err := parseHalf(hi)
	if err != nil {
		return 0, fmt.Errorf("parsing LSN %q: the part before the slash %w", s, err)
	}
	l, err := parseHalf(lo)
	if err != nil {
		return 0, fmt.Errorf("parsing LSN %q: the part after the slash %w", s, err)
	}
	return LSN(h<<32 | l), nil
}

func parseHalf(s string) (uint64, error) {
	if len(s) < 1 || len(s) > 8 {
		return 0, fmt.Errorf("has %d digits, want 1 to 8", len(s))
	}
	var v uint64
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | uint64(c-'A'+10)
		default:
			return 0, fmt.Errorf("holds %q, want hexadecimal digits only", c)
		}
	}
	return v, nil
}

// String gives the form that PostgreSQL 13 to 18 print: %X/%X.
func (l LSN) String() string {
	return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l))
}

// MarshalText writes the form of String.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what ParseLSN accepts.
func (l *LSN) UnmarshalText(b []byte) error {
	v, err := ParseLSN(string(b))
	if err != nil {
		return err
	}
	*l = v
	return nil
}

// Timeline is a timeline identifier; zero is none.
type Timeline uint32

// Epoch is the fencing number of a controller's leadership: the create revision
// of its leader key in etcd. A higher epoch of the same store is later.
type Epoch int64

// SystemID is the system identifier that initdb gave to a cluster.
type SystemID uint64

// ParseSystemID reads the decimal form.
func ParseSystemID(s string) (SystemID, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parsing system identifier %q: want a decimal number of 64 bits", s)
	}
	return SystemID(v), nil
}

func (s SystemID) String() string { return strconv.FormatUint(uint64(s), 10) }

// MarshalText writes the decimal form, a string in JSON: 64 bits do not fit
// into the numbers of many JSON readers.
func (s SystemID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSystemID accepts.
func (s *SystemID) UnmarshalText(b []byte) error {
	v, err := ParseSystemID(string(b))
	if err != nil {
		return err
	}
	*s = v
	return nil
}
