package fuzz

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
)

// kind is what an argument means; its values are SQL expressions.
type kind int

const (
	aName kind = iota
	aPlugin
	anOID
	aBool
	anLSN
	anXID
	aSnapshot
	anIncarnation
	aResume
	aText
	anEpoch
	aSystemID
	aTimeline
	aGeneration
	aMaxBytes
	aToken
	aTimeout
)

// values makes arguments: of what the servers hold now, or hostile ones.
type values struct {
	rand *rand.Rand
	// What was seen on the servers, as texts without quotes.
	names, lsns, xids, incarnations, snapshots, resumes, tokens []string
	databases                                                   []string
}

func lit(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// seen gives one of what was seen on the servers, or other where nothing was.
func (v *values) seen(all []string, other string) string {
	if len(all) == 0 {
		return other
	}
	return pick(v.rand, all...)
}

// hostile gives an argument of this kind that a caller in his senses would not.
func (v *values) hostile(k kind) string {
	if v.rand.IntN(12) == 0 {
		return "NULL"
	}
	switch k {
	case aName, aPlugin:
		return v.name(k)
	case anOID:
		return pick(v.rand, "0", "1", "4294967295", "2147483648", v.seen(v.databases, "5"))
	case aBool:
		return pick(v.rand, "true", "false")
	case anLSN:
		return lit(v.lsn()) + "::pg_lsn"
	case anXID:
		return lit(v.xid()) + "::xid"
	case aSnapshot:
		return v.snapshot()
	case anIncarnation:
		return v.incarnation()
	case aResume:
		return v.resume()
	case aText:
		return lit(pick(v.rand, "", "fuzz", "a\nb", "größe", "k=v", strings.Repeat("x", 255), strings.Repeat("x", 256), "\x7f", "other"))
	case aToken:
		return lit(v.token())
	case aTimeout:
		return lit(v.timeout()) + "::interval"
	case anEpoch, aGeneration, aMaxBytes:
		return pick(v.rand, "0", "-1", "1", "2", "9223372036854775807", "-9223372036854775808", "9223372036854775806", "4294967296")
	case aSystemID:
		return lit(pick(v.rand, "", "0", "abc", "-1", "+1", " 1", "1 ", "18446744073709551615", "18446744073709551616", strings.Repeat("9", 40), "0x10"))
	case aTimeline:
		return pick(v.rand, "0", "1", "2", "3", "-1", "4294967295", "4294967296", "9223372036854775807")
	}
	return "NULL"
}

func (v *values) name(k kind) string {
	if k == aPlugin {
		return lit(pick(v.rand, "", "test_decoding", "pgoutput", "no_such_plugin", "plpgsql", "/etc/passwd", "../../../../bin/sh",
			"$libdir/test_decoding", "$libdir", "/", "//", strings.Repeat("p", 64), "..", "a'b"))
	}
	if v.rand.IntN(2) == 0 {
		return lit(v.seen(v.names, "nobody"))
	}
	return lit(pick(v.rand, "", "a", "Upper", "two words", "../x", "..", ".", "/", "a/b", "/etc/passwd", "slotkeeper.fence", "x.tmp", "state",
		"'; DROP TABLE t; --", `"quoted"`, `back\slash`, "%s%n", "\x01", "\u0080", "é", "名前", "a\tb", "slotkeeper_hold", "slotkeeper_wal",
		strings.Repeat("x", 62), strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("é", 32), fmt.Sprintf("n%d", v.rand.IntN(100))))
}

func (v *values) lsn() string {
	at := v.seen(v.lsns, "0/1000028")
	switch v.rand.IntN(5) {
	case 0:
		return pick(v.rand, "0/0", "0/1", "0/28", "0/FFFFFF", "0/1000000", "0/1000028", "0/FFFFFFFF", "1/0", "7FFFFFFF/FFFFFFFF", "80000000/0", "FFFFFFFF/FFFFFFFF", "FFFFFFFF/FF000000")
	case 1:
		return moved(at, int64(v.rand.IntN(64))-32)
	case 2:
		return moved(at, pick[int64](v.rand, -1<<24, 1<<24, -8192, 8192, 1<<32, -1<<32))
	}
	return at
}

// moved shifts a position; it wraps around as the type does.
func moved(lsn string, by int64) string {
	var hi, lo uint32
	if _, err := fmt.Sscanf(lsn, "%X/%X", &hi, &lo); err != nil {
		return "0/0"
	}
	at := uint64(int64(uint64(hi)<<32|uint64(lo)) + by)
	return fmt.Sprintf("%X/%X", at>>32, at&0xffffffff)
}

func (v *values) xid() string {
	var at uint32
	_, _ = fmt.Sscan(v.seen(v.xids, "700"), &at) // 0 is as good a beginning
	switch v.rand.IntN(3) {
	case 0:
		return pick(v.rand, "0", "1", "2", "3", "4", "2147483647", "2147483648", "2147483649", "4294967295")
	case 1:
		return fmt.Sprint(at + pick[uint32](v.rand, 1, 2, 100, 1<<31-1, 1<<31, 1<<31+1, ^uint32(0), 1000000))
	}
	return fmt.Sprint(at)
}

// snapshot gives real bytes with a few of them changed, or cut, or rubbish.
func (v *values) snapshot() string {
	bytes, err := hex.DecodeString(v.seen(v.snapshots, "51a1e001"))
	if err != nil {
		return "NULL"
	}
	switch v.rand.IntN(5) {
	case 0:
		bytes = bytes[:v.rand.IntN(len(bytes))]
	case 1:
		bytes = append(bytes, make([]byte, v.rand.IntN(100)+1)...)
	case 2:
		return pick(v.rand, "''::bytea", "'\\x00'::bytea", "decode(repeat('ff', 200), 'hex')", "decode(repeat('00', 1000000), 'hex')")
	default:
		for range v.rand.IntN(3) + 1 {
			bytes[v.rand.IntN(len(bytes))] ^= byte(1 << v.rand.IntN(8))
		}
	}
	return fmt.Sprintf("'\\x%x'::bytea", bytes)
}

func (v *values) incarnation() string {
	if v.rand.IntN(2) == 0 {
		return lit(v.seen(v.incarnations, "(1,)")) + "::slotkeeper.incarnation"
	}
	return pick(v.rand, "ROW(NULL, NULL)", "ROW('1', NULL)", "ROW('18446744073709551615', 'infinity')", "ROW('0', '-infinity')", "ROW('x', NULL)",
		"ROW('', NULL)", "ROW('1', '294276-12-31')") + "::slotkeeper.incarnation"
}

// resume gives a text as a walk returns it with some of it changed.
func (v *values) resume() string {
	text := v.seen(v.resumes, "2 restart=0/1000028 timeline=1 at=0/1000028 phase=start next=0 changed=0 lacks=f file=0/0 file_next=0 restarted=f barred=f")
	switch v.rand.IntN(6) {
	case 0:
		return lit(text)
	case 1:
		return lit(text[:v.rand.IntN(len(text))])
	case 2:
		return lit(pick(v.rand, "", "2", strings.Repeat("2 restart=", 1000), text+" ", " "+text, text+"\n"))
	}
	fields := strings.Fields(text)
	for range v.rand.IntN(3) + 1 {
		i := v.rand.IntN(len(fields))
		key, _, _ := strings.Cut(fields[i], "=")
		fields[i] = key + "=" + v.resumeValue(key)
	}
	return lit(strings.Join(fields, " "))
}

func (v *values) resumeValue(key string) string {
	switch key {
	case "restart", "at", "file":
		return v.lsn()
	case "timeline":
		return pick(v.rand, "0", "1", "2", "4294967295", "-1")
	case "phase":
		return pick(v.rand, "start", "building", "full", "stale", "", "startstartstartstart")
	case "lacks", "restarted", "barred":
		return pick(v.rand, "t", "f", "x")
	}
	return v.xid()
}
