package patroni

import (
	"encoding/json"
	"testing"
)

func TestMend(t *testing.T) {
	const rule = `{"type":"logical"},{"name":"slotkeeper_hold","type":"physical"}`
	for config, want := range map[string]string{
		`{}`:                    `{"ignore_slots":[` + rule + `]}`,
		`{"ignore_slots":null}`: `{"ignore_slots":[` + rule + `]}`,
		`{"ignore_slots":[{"type":"logical"},{"type":"physical","name":"slotkeeper_hold"}]}`:  `null`,
		`{"ignore_slots":[{"name":"theirs"}]}`:                                                `{"ignore_slots":[{"name":"theirs"},` + rule + `]}`,
		`{"ignore_slots":[{}]}`:                                                               `null`,
		`{"ignore_slots":[{"type":"logical","plugin":"wal2json"}]}`:                           `{"ignore_slots":[{"plugin":"wal2json","type":"logical"},` + rule + `]}`,
		`{"ignore_slots":{"type":"logical"}}`:                                                 `{"ignore_slots":[` + rule + `]}`,
		`{"ignore_slots":["logical",{"name":"x"}]}`:                                           `{"ignore_slots":[{"name":"x"},` + rule + `]}`,
		`{"ignore_slots":"logical"}`:                                                          `{"ignore_slots":[` + rule + `]}`,
		`{"postgresql":{"ignore_slots":[{"type":"logical"}]}}`:                                `{"ignore_slots":[` + rule + `],"postgresql":{"ignore_slots":null}}`,
		`{"ignore_slots":[` + rule + `],"postgresql":{"ignore_slots":null,"use_slots":true}}`: `{"postgresql":{"ignore_slots":null}}`,
	} {
		o, err := parseObject([]byte(config))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(Mend(o, true, []string{"slotkeeper_hold"}))
		if err != nil || string(got) != want {
			t.Errorf("%s\ngot  %s\nwant %s", config, got, want)
		}
	}
}
