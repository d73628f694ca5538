package cluster_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestXIDOrder(t *testing.T) {
	cases := []struct {
		a, b     cluster.XID
		precedes bool
		notAfter bool
	}{
		{3, 4, true, true},
		{4, 3, false, false},
		{727, 727, false, true},
		{4294967295, 3, true, true}, // across the wrap
		{3, 4294967295, false, false},
		{3, 3 + 1<<31, true, true}, // exactly half of the circle apart: int32 is negative
		{0, 5, false, false},
		{5, 0, false, false},
		{1, 5, false, false},
		{2, 5, false, false},
		{2, 2, false, false},
	}
	for _, c := range cases {
		if got := c.a.Precedes(c.b); got != c.precedes {
			t.Errorf("%s.Precedes(%s) = %t", c.a, c.b, got)
		}
		if got := c.a.NotAfter(c.b); got != c.notAfter {
			t.Errorf("%s.NotAfter(%s) = %t", c.a, c.b, got)
		}
	}
}

func TestXIDAge(t *testing.T) {
	for _, c := range []struct {
		x, next cluster.XID
		age     int64
	}{
		{3, 3, 0},
		{3, 10, 7},
		{10, 3, 0}, // not before it
		{4294967295, 4, 5},
		{3, 3 + 1<<31, 1 << 31},
		{0, 10, 0},
		{10, 0, 0},
	} {
		if got := c.x.Age(c.next); got != c.age {
			t.Errorf("%s.Age(%s) = %d, want %d", c.x, c.next, got, c.age)
		}
	}
}

func TestOldestXID(t *testing.T) {
	if got := cluster.OldestXID(0, 1, 2); got.OK {
		t.Errorf("special values gave %s", got.V)
	}
	if got := cluster.OldestXID(); got.OK {
		t.Errorf("nothing gave %s", got.V)
	}
	if got := cluster.OldestXID(5, 0, 4294967290, 7); got != cluster.Some(cluster.XID(4294967290)) {
		t.Errorf("got %v, want the one before the wrap", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		base := cluster.XID(rapid.Uint32Min(3).Draw(t, "base"))
		var xs []cluster.XID
		for _, d := range rapid.SliceOfN(rapid.Uint32Range(0, 1<<30), 1, 8).Draw(t, "distances") {
			if x := base + cluster.XID(d); x.Normal() {
				xs = append(xs, x)
			}
		}
		oldest := cluster.OldestXID(xs...)
		for _, x := range xs {
			if !oldest.V.NotAfter(x) {
				t.Fatalf("%s of %v is after %s", oldest.V, xs, x)
			}
		}
	})
}
