package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// received makes deliveries of whole transactions "writer.tx:part,part" of one stream.
func received(d *Deliveries, stream int, transactions ...Delivery) *Deliveries {
	for _, delivery := range transactions {
		delivery.Stream = stream
		d.add(delivery)
	}
	return d
}

func tx(writer int32, number int64, commit cluster.LSN, parts ...int32) Delivery {
	return Delivery{Node: "a", Writer: writer, Tx: number, Parts: parts, Commit: commit, End: commit + 8}
}

func TestAccount(t *testing.T) {
	truth := Truth{
		parts:    map[txID][]int32{{1, 1}: {0}, {1, 2}: {0, 2}, {2, 1}: {0, 1}},
		messages: []string{"9.1", "9.2"},
	}
	one, two, three := tx(1, 1, 100, 0), tx(2, 1, 200, 0, 1), tx(1, 2, 300, 0, 2)
	reference := received(NewDeliveries(), 0, one, two, three)
	all := func(streams ...[]Delivery) *Deliveries {
		d := NewDeliveries()
		for i, stream := range streams {
			received(d, i, stream...)
		}
		d.message("9.1")
		d.message("9.2")
		return d
	}
	for _, c := range []struct {
		name    string
		got     *Deliveries
		bounds  Bounds
		want    Account
		problem string // a part of the one problem that must be found
	}{
		{name: "all came once", got: all([]Delivery{one, two, three}),
			want: Account{Committed: 5, Delivered: 5, Messages: 2}},
		{name: "a transaction is lost", got: all([]Delivery{one, three}),
			want: Account{Committed: 5, Delivered: 3, Messages: 2, Lost: []RowID{{2, 1, 0}, {2, 1, 1}}}},
		{name: "all is lost", got: all(),
			want: Account{Committed: 5, Messages: 2, Lost: []RowID{{1, 1, 0}, {1, 2, 0}, {1, 2, 2}, {2, 1, 0}, {2, 1, 1}}}},
		{name: "a duplicate within bounds", got: all([]Delivery{one, two}, []Delivery{two, three}),
			bounds: Bounds{Positions: map[int]cluster.LSN{0: 0, 1: 200}},
			want:   Account{Committed: 5, Delivered: 5, Duplicated: 2, Messages: 2}},
		{name: "a duplicate from before the slot's position", got: all([]Delivery{one, two}, []Delivery{two, three}),
			bounds:  Bounds{Positions: map[int]cluster.LSN{1: 201}},
			want:    Account{Committed: 5, Delivered: 5, Duplicated: 2, Messages: 2},
			problem: "though its slot was at 0/C9"},
		{name: "half a transaction", got: all([]Delivery{one, two, tx(1, 2, 300, 2)}),
			want:    Account{Committed: 5, Delivered: 4, Messages: 2, Lost: []RowID{{1, 2, 0}}},
			problem: "with the rows [2], committed are [0 2]"},
		{name: "half a transaction, whole before", got: all([]Delivery{one, two, three}, []Delivery{tx(1, 2, 300, 2)}),
			want:    Account{Committed: 5, Delivered: 5, Duplicated: 1, Messages: 2},
			problem: "with the rows [2], committed are [0 2]"},
		{name: "a row that was rolled back", got: all([]Delivery{one, two, tx(1, 2, 300, 0, 1, 2)}),
			want:    Account{Committed: 5, Delivered: 5, Messages: 2},
			problem: "with the rows [0 1 2]"},
		{name: "a row twice in one delivery", got: all([]Delivery{tx(1, 1, 100, 0, 0), two, three}),
			want:    Account{Committed: 5, Delivered: 5, Duplicated: 1, Messages: 2},
			problem: "with the rows [0 0]"},
		{name: "a writer's transactions out of order", got: all([]Delivery{tx(1, 2, 100, 0, 2), two, tx(1, 1, 300, 0)}),
			want:    Account{Committed: 5, Delivered: 5, Messages: 2},
			problem: "transaction 1.1 came from node \"a\" after 2"},
		{name: "commits out of order", got: all([]Delivery{two, one, three}),
			want:    Account{Committed: 5, Delivered: 5, Messages: 2},
			problem: "after one of 0/C8"},
		{name: "a transaction that the promoted node never got", got: all([]Delivery{one, two, three, tx(3, 1, 400, 0)}),
			want: Account{Committed: 5, Delivered: 5, Messages: 2, Gone: 1}},
		{name: "a slot owes only what committed from its beginning on", got: received(NewDeliveries(), 0, two, three),
			bounds: Bounds{From: 200}, want: Account{Committed: 4, Delivered: 4}},
		{name: "a younger slot that lost one", got: received(NewDeliveries(), 0, three),
			bounds: Bounds{From: 200}, want: Account{Committed: 4, Delivered: 2, Lost: []RowID{{2, 1, 0}, {2, 1, 1}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.got.Account("s", truth, c.bounds, reference)
			if c.problem == "" && len(got.Problems) > 0 || c.problem != "" && (len(got.Problems) != 1 || !strings.Contains(got.Problems[0], c.problem)) {
				t.Errorf("the problems are %q, want one with %q", got.Problems, c.problem)
			}
			if got.Clean() != (c.problem == "" && len(c.want.Lost) == 0) {
				t.Errorf("Clean is %v", got.Clean())
			}
			got.Problems, got.Slot = nil, ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the account differs (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a message is lost", func(t *testing.T) {
		d := received(NewDeliveries(), 0, one, two, three)
		d.message("9.1")
		if got := d.Account("s", truth, Bounds{}, d); !slices.Equal(got.LostNotes, []string{"9.2"}) || got.Clean() {
			t.Errorf("lost messages are %v, clean is %v; want 9.2 and false", got.LostNotes, got.Clean())
		}
	})
}

func TestCheckRow(t *testing.T) {
	id := RowID{1, 30, 2}
	for name, c := range map[string]struct {
		values map[string]string
		ok     bool
	}{
		"plain":                     {map[string]string{"body": body(id, "")}, true},
		"with its column":           {map[string]string{"body": body(id, "v_1_7"), "v_1_7": "30"}, true},
		"no body":                   {map[string]string{}, false},
		"another row's body":        {map[string]string{"body": body(RowID{1, 30, 1}, "")}, false},
		"its column did not come":   {map[string]string{"body": body(id, "v_1_7")}, false},
		"its column came with junk": {map[string]string{"body": body(id, "v_1_7"), "v_1_7": "31"}, false},
	} {
		if err := checkRow(id, c.values); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseRowID(t *testing.T) {
	id := RowID{3, 1 << 40, 7}
	if got := must(ParseRowID(id.String()))(t); got != id {
		t.Errorf("got %v back, want %v", got, id)
	}
	for _, bad := range []string{"", "1.2", "1.2.3.4", "a.2.3", "1.2.99999999999"} {
		if _, err := ParseRowID(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
