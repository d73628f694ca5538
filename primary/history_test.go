package primary

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slotkeeper/slotkeeper/cluster"
)

func TestParseHistory(t *testing.T) {
	for _, tc := range []struct {
		name, content string
		tli           cluster.Timeline
		want          []cluster.Fork
		err           string
	}{
		{"empty", "", 2, nil, ""},
		{"as the server writes it", "1\t0/3000060\tno recovery target specified\n\n2\t1/A\tno recovery target specified\n", 3,
			[]cluster.Fork{{Timeline: 1, LSN: 0x3000060}, {Timeline: 2, LSN: 1<<32 | 0xA}}, ""},
		{"comments and blanks", "# by hand\n  1 0/A\n\n", 4, []cluster.Fork{{Timeline: 1, LSN: 0xA}}, ""},
		{"carriage returns", "1\t0/A\tx\r\n", 2, []cluster.Fork{{Timeline: 1, LSN: 0xA}}, ""},
		{"two forks at one position", "1\t0/A\tx\n2\t0/A\tx\n", 3, []cluster.Fork{{Timeline: 1, LSN: 0xA}, {Timeline: 2, LSN: 0xA}}, ""},
		{"no position", "1\n", 2, nil, "line 1"},
		{"rubbish after the position", "1\t0/Azz\tx\n", 2, nil, "line 1"},
		{"no timeline", "1\t0/A\tx\nzwei\t0/B\tx\n", 3, nil, "line 2"},
		{"timeline zero", "0\t0/A\tx\n", 2, nil, "not a timeline"},
		{"timeline beyond 32 bits", "4294967297\t0/A\tx\n", 2, nil, "not a timeline"},
		{"position zero", "1\t0/0\tx\n", 2, nil, "no position"},
		{"timelines fall", "2\t0/A\tx\n1\t0/B\tx\n", 3, nil, "timeline 1 comes after 2"},
		{"a timeline twice", "1\t0/A\tx\n1\t0/B\tx\n", 3, nil, "comes after"},
		{"positions fall", "1\t0/B\tx\n2\t0/A\tx\n", 3, nil, "before timeline 1"},
		{"its own timeline", "1\t0/A\tx\n2\t0/B\tx\n", 2, nil, "not before 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseHistory([]byte(tc.content), tc.tli)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
