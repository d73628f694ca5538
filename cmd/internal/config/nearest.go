package config

import "strings"

// nearest gives the name that was probably meant: one at most two edits away,
// and not further than half of its length. "" where there is none.
func nearest(name string, names []string) string {
	best, bestDistance := "", 3
	for _, candidate := range names {
		d := distance(strings.ToLower(name), candidate)
		if d < bestDistance && d*2 <= len(candidate) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance is Levenshtein's, by bytes.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			previous, row[j+1] = row[j+1], min(previous+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
