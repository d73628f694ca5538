package patroni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose numbers are json.Number.
type object map[string]any

// parseObject reads one JSON object. The error names what it is instead, and
// quotes nothing: a key may hold a password.
func parseObject(text []byte) (object, error) {
	v, err := parseValue(text)
	if err != nil {
		return nil, err
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is %s, not an object", kindOf(v))
	}
	return o, nil
}

func parseValue(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("it is empty")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		var at *json.SyntaxError
		if errors.As(err, &at) {
			return nil, fmt.Errorf("it is no JSON (at byte %d)", at.Offset)
		}
		return nil, errors.New("it is no JSON")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind its JSON")
	}
	return v, nil
}

// kindOf names the kind of a JSON value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	}
	return "a mapping"
}

// truth is Python's bool(value).
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case json.Number:
		f, err := v.Float64()
		return err != nil || f != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// switched is Patroni's parse_bool; ok is false where the value is neither.
func switched(v any) (on, ok bool) {
	var text string
	switch v := v.(type) {
	case bool:
		return v, true
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	switch strings.ToLower(text) {
	case "on", "true", "yes", "1":
		return true, true
	case "off", "false", "no", "0":
		return false, true
	}
	return false, false
}

// integer gives a whole number, also one that is written as a text.
func integer(v any) (int64, bool) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	default:
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// text gives a text that is one, "" for everything else.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// shown writes a scalar as a tag's value is shown.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	}
	return kindOf(v)
}

func (o object) object(name string) object {
	m, _ := o[name].(map[string]any)
	return m
}

func (o object) on(name string) bool {
	on, _ := switched(o[name])
	return on
}

func (o object) int(name string, otherwise int64) int64 {
	if n, ok := integer(o[name]); ok {
		return n
	}
	return otherwise
}
