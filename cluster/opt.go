package cluster

import (
	"bytes"
	"encoding/json"
)

// Opt is a value that may be absent. It stands for SQL's NULL: an absent LSN
// is not 0 and an absent name is not "". In JSON an absent value is null.
type Opt[T any] struct {
	V  T
	OK bool
}

// Some is a value that is there.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, OK: true} }

// None is an absent value.
func None[T any]() Opt[T] { return Opt[T]{} }

// Or gives the value, or other where it is absent.
func (o Opt[T]) Or(other T) T {
	if o.OK {
		return o.V
	}
	return other
}

// Ptr gives a pointer to a copy of the value, nil where it is absent: what
// database drivers take for NULL.
func (o Opt[T]) Ptr() *T {
	if !o.OK {
		return nil
	}
	v := o.V
	return &v
}

// FromPtr is absent for nil, else what p points to.
func FromPtr[T any](p *T) Opt[T] {
	if p == nil {
		return Opt[T]{}
	}
	return Some(*p)
}

// MarshalJSON writes null for an absent value.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.OK {
		return []byte("null"), nil
	}
	return json.Marshal(o.V)
}

// UnmarshalJSON reads null as absent.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		*o = Opt[T]{}
		return nil
	}
	if err := json.Unmarshal(b, &o.V); err != nil {
		return err
	}
	o.OK = true
	return nil
}

// IsZero makes `omitzero` leave an absent value out of JSON.
func (o Opt[T]) IsZero() bool { return !o.OK }
