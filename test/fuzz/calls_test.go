package fuzz

import (
	"fmt"
	"strings"
)

const forever = "9223372036854775807"

func (v *view) raise() call  { return call{"raise_fence", []arg{v.fence}} }
func (v *view) remove() call { return call{"remove_fence", []arg{v.fence}} }

// hold wants what the slots pin now, and leaves slotkeeper_wal alone.
func (v *view) hold(slots []seenSlot) call {
	var wants []arg
	for _, s := range slots {
		wants = append(wants, s.want)
	}
	return call{"hold", []arg{v.fence, plain(aGeneration, fmt.Sprint(v.generation)), array("slotkeeper.want", wants...), plain(anLSN, "NULL::pg_lsn")}}
}

func (v *view) apply(slots []seenSlot) call {
	var changes []arg
	for _, s := range slots {
		changes = append(changes, s.change)
	}
	return call{"apply", []arg{v.fence, array("slotkeeper.change", changes...), plain(aMaxBytes, forever)}}
}

func (v *view) drop(names ...string) call {
	return call{"drop", []arg{v.fence, namesArg(names)}}
}

func (v *view) stamp(names ...string) call {
	return call{"stamp", []arg{v.fence, plain(aGeneration, fmt.Sprint(v.generation)), namesArg(names)}}
}

func (v *view) mark(slots []seenSlot) call {
	var names []string
	var incarnations []arg
	for _, s := range slots {
		names = append(names, s.name)
		incarnations = append(incarnations, plain(anIncarnation, lit(s.incarnation)+"::slotkeeper.incarnation"))
	}
	return call{"mark", []arg{v.fence, namesArg(names), array("slotkeeper.incarnation", incarnations...)}}
}

func namesArg(names []string) arg {
	var all []arg
	for _, name := range names {
		all = append(all, plain(aName, lit(name)))
	}
	return array("name", all...)
}

func (v *view) walk(s seenSlot, resume, maxBytes string) call {
	return call{"consistent_point", []arg{orNull(anLSN, s.restart), orNull(anLSN, s.confirmed), plain(aResume, resume), plain(aMaxBytes, maxBytes)}}
}

// mirrors are the marked mirrors that this node shows.
func (v *view) mirrors() []string {
	var names []string
	for _, s := range v.local {
		if s.marker == "mirror" {
			names = append(names, s.name)
		}
	}
	return names
}

// some gives a few of the primary's slots, now and then none.
func (v *view) some() []seenSlot {
	var few []seenSlot
	for _, s := range v.originals {
		if v.rand.IntN(2) == 0 {
			few = append(few, s)
		}
	}
	return few
}

// one gives a valid call of any function.
func (v *view) one() call {
	slots, names := v.some(), v.mirrors()
	if v.rand.IntN(3) == 0 {
		names = append(names, v.seen(v.names, "nobody"))
	}
	switch v.rand.IntN(16) {
	case 0:
		return v.raise()
	case 1:
		return v.remove()
	case 2, 3:
		c := v.hold(slots)
		c.args[3].sql = pick(v.rand, "NULL", lit("0/0"), lit(v.seen(v.lsns, "0/0")))
		return c
	case 4, 5, 6, 7:
		c := v.apply(slots)
		c.args[2].sql = pick(v.rand, forever, "1", "8192", "100000")
		if v.rand.IntN(4) == 0 && len(slots) > 0 {
			change := &c.args[1].elems[v.rand.IntN(len(slots))]
			change.fields[8].sql = v.snapshot() // nothing else of it is wrong
		}
		return c
	case 8:
		return v.drop(names...)
	case 9:
		return v.stamp(names...)
	case 10:
		return v.mark(slots)
	case 11:
		return call{"snapshot", []arg{plain(anLSN, lit(v.seen(v.lsns, "0/1000028")))}}
	case 12:
		return call{pick(v.rand, "node", "slots"), nil}
	case 13:
		return v.wait()
	case 14:
		return call{"end_sessions", []arg{v.fence, plain(aText, pick(v.rand, lit("Patroni"), lit("nobody")))}}
	}
	if len(v.originals) == 0 {
		return call{"node", nil}
	}
	return v.walk(pick(v.rand, v.originals...), pick(v.rand, "NULL", v.resume()), pick(v.rand, "1", "1000", forever))
}

// wrapped puts a call where callers put one.
func (v *view) wrapped(c call) string {
	if c.function == waits {
		return v.wrappedWait(c)
	}
	sql := c.sql()
	switch v.rand.IntN(30) {
	case 0:
		return "BEGIN; SAVEPOINT a; " + sql + "; ROLLBACK TO a; " + sql + "; COMMIT"
	case 1:
		return "BEGIN; " + sql + "; ROLLBACK"
	case 2:
		return "DO $fuzz$ BEGIN PERFORM * FROM (" + sql + ") x; EXCEPTION WHEN division_by_zero THEN NULL; END $fuzz$; " + sql
	case 3:
		return "BEGIN; DECLARE c CURSOR FOR " + sql + "; FETCH 1 FROM c; CLOSE c; COMMIT"
	case 4:
		return fmt.Sprintf("BEGIN; SET LOCAL statement_timeout = '%dms'; %s; COMMIT", v.rand.IntN(5)+1, sql)
	case 5:
		return sql + " LIMIT 1"
	case 6:
		return "SELECT slotkeeper." + c.function + "(" + list(c.args) + ")"
	}
	return sql
}

// harmless reports whether an error is one that a wrong call should get: of
// classes 22 (data), 23, 42 (names, types, rights), 55 (state), 57 (cancelled).
func harmless(sqlstate string) bool {
	for _, class := range []string{"0A", "22", "25", "2202", "23", "34", "42", "54", "55", "57014"} {
		if strings.HasPrefix(sqlstate, class) {
			return true
		}
	}
	return false
}
