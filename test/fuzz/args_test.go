package fuzz

import (
	"fmt"
	"strings"
)

// arg is one argument: a plain one, a composite of fields, or an array.
type arg struct {
	kind   kind
	sql    string // of a plain one
	typ    string // of a composite, or of an array's elements
	fields []arg  // of a composite
	array  bool
	elems  []arg // of an array
}

func plain(k kind, sql string) arg { return arg{kind: k, sql: sql} }

func composite(typ string, fields ...arg) arg { return arg{typ: typ, fields: fields} }

func array(typ string, elems ...arg) arg { return arg{typ: typ, array: true, elems: elems} }

func (a arg) String() string {
	switch {
	case a.sql != "":
		return a.sql
	case a.array:
		return "ARRAY[" + list(a.elems) + "]::" + a.typ + "[]"
	default:
		return "ROW(" + list(a.fields) + ")::" + a.typ
	}
}

func list(all []arg) string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}

// broken gives the argument with one thing in it made hostile.
func (v *values) broken(a arg) arg {
	switch {
	case a.sql != "":
		a.sql = v.hostile(a.kind)
	case a.array:
		return v.brokenArray(a)
	case v.rand.IntN(20) == 0:
		a.sql = pick(v.rand, "NULL", "ROW("+strings.TrimSuffix(strings.Repeat("NULL, ", len(a.fields)), ", ")+")") + "::" + a.typ
	default:
		a.fields = brokenOne(v, a.fields)
	}
	return a
}

func (v *values) brokenArray(a arg) arg {
	if len(a.elems) > 0 && v.rand.IntN(4) > 0 {
		a.elems = brokenOne(v, a.elems)
		return a
	}
	whole := a.String()
	element := "NULL::" + a.typ
	if len(a.elems) > 0 {
		element = a.elems[0].String() + "::" + a.typ
	}
	a.sql = pick(v.rand, "NULL::"+a.typ+"[]", "ARRAY[]::"+a.typ+"[]", "ARRAY[NULL]::"+a.typ+"[]", whole+" || "+whole, whole+" || NULL::"+a.typ,
		"ARRAY["+whole+", "+whole+"]", "array_fill("+element+", ARRAY[1], ARRAY[2147483646])", "array_fill("+element+", ARRAY[2, 2, 2])")
	if v.rand.IntN(20) == 0 {
		a.sql = "array_fill(" + element + ", ARRAY[10000])"
		if len(a.elems) > 0 {
			a.sql = "(SELECT array_agg(" + v.numbered(a.elems[0]) + "::" + a.typ + ") FROM generate_series(1, 10000) i)"
		}
	}
	return a
}

// numbered gives an element whose name is another one in each row of i.
func (v *values) numbered(a arg) string {
	switch {
	case a.sql != "" && a.kind == aName && a.sql != "NULL":
		return "('n' || i)::name"
	case a.sql == "":
		fields := append([]arg(nil), a.fields...)
		for i := range fields {
			if fields[i].kind == aName {
				fields[i].sql = v.numbered(fields[i])
			}
		}
		return fmt.Sprintf("ROW(%s)::%s", list(fields), a.typ)
	}
	return a.sql
}

func brokenOne(v *values, all []arg) []arg {
	all = append([]arg(nil), all...)
	i := v.rand.IntN(len(all))
	all[i] = v.broken(all[i])
	return all
}

// call is one call of a function of the extension.
type call struct {
	function string
	args     []arg
}

func (c call) broken(v *values) call {
	if len(c.args) > 0 {
		c.args = brokenOne(v, c.args)
		for v.rand.IntN(3) == 0 {
			c.args = brokenOne(v, c.args)
		}
	}
	return c
}

// sql gives the codes of its rows, or its text, in one column, what it says of how
// to go on in a second one, and details in a third.
func (c call) sql() string {
	what := fmt.Sprintf("FROM slotkeeper.%s(%s) r", c.function, list(c.args))
	switch c.function {
	case "raise_fence", "remove_fence":
		return "SELECT r::text, NULL, NULL " + what
	case "hold", "apply", "mark", "stamp", "drop", "end_sessions":
		return "SELECT r.code, r.resume, r.detail " + what
	case "consistent_point":
		return "SELECT coalesce(r.way, 'none'), r.resume, NULL " + what
	case "snapshot":
		return "SELECT CASE WHEN r IS NULL THEN 'none' ELSE 'bytes' END, NULL, NULL " + what
	}
	return "SELECT 'row', NULL, NULL " + what
}
