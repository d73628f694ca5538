package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/static"
)

// errOnlyFile answers for values that are too rich for a variable or a flag.
var errOnlyFile = wrongf("write it in the file", "is a list of mappings")

type membersValue struct{ p *[]cluster.Member }

func (membersValue) set(string) error { return errOnlyFile }

func (v membersValue) show() any {
	out := make([]any, 0, len(*v.p))
	for _, m := range *v.p {
		out = append(out, pairs{{"name", m.Name}, {"conninfo", m.Conninfo}})
	}
	return out
}

func (v membersValue) fromNode(l *Loaded, key string, n *yaml.Node) []Problem {
	var members []cluster.Member
	problems := l.eachEntry(key, n, []string{"name", "conninfo"}, func(where string, n *yaml.Node, texts map[string]string) []Problem {
		m := cluster.Member{Name: texts["name"], Conninfo: texts["conninfo"]}
		members = append(members, m)
		if err := word(m.Name); err != nil {
			return []Problem{problemOf(l.place(n), where+".name", err)}
		}
		if err := static.Check([]cluster.Member{m}); err != nil {
			return []Problem{{l.place(n), where, memberText(m, err), ""}}
		}
		for _, other := range members[:len(members)-1] {
			if other.Name == m.Name {
				return []Problem{{l.place(n), where + ".name", fmt.Sprintf("%q is the name of two members", m.Name), "give each its own"}}
			}
			if other.Conninfo == m.Conninfo {
				return []Problem{{l.place(n), where + ".conninfo", fmt.Sprintf("is the same as that of %s", other.Name), "each member is a server of its own"}}
			}
		}
		return nil
	})
	*v.p = members
	return problems
}

// memberText takes off what the place and the key say already.
func memberText(m cluster.Member, err error) string {
	return strings.TrimPrefix(err.Error(), fmt.Sprintf("member 1 (%q): ", m.Name))
}

type matchesValue struct{ p *[]Match }

func (matchesValue) set(string) error { return errOnlyFile }

func (v matchesValue) show() any {
	out := make([]any, 0, len(*v.p))
	for _, m := range *v.p {
		var p pairs
		for _, kv := range (pairs{{"name", m.Name}, {"database", m.Database}, {"plugin", m.Plugin}}) {
			if kv.value != "" {
				p = append(p, kv)
			}
		}
		out = append(out, p)
	}
	return out
}

func (v matchesValue) fromNode(l *Loaded, key string, n *yaml.Node) []Problem {
	matches := []Match{}
	problems := l.eachEntry(key, n, []string{"name", "database", "plugin"}, func(where string, n *yaml.Node, texts map[string]string) []Problem {
		if len(texts) == 0 {
			return []Problem{{l.place(n), where, "matches nothing in particular", `write at least one of name, database and plugin, such as {name: "*"}`}}
		}
		for field, glob := range texts {
			if _, err := path.Match(glob, ""); err != nil || glob == "" {
				return []Problem{{l.place(n), where + "." + field, fmt.Sprintf("%q is not a glob", glob), "use * ? and [a-z], and \\ before a character that is meant itself"}}
			}
		}
		matches = append(matches, Match{Name: texts["name"], Database: texts["database"], Plugin: texts["plugin"]})
		return nil
	})
	*v.p = matches
	return problems
}

// eachEntry walks a list of mappings of text, strictly.
func (l *Loaded) eachEntry(key string, n *yaml.Node, fields []string, each func(string, *yaml.Node, map[string]string) []Problem) []Problem {
	form := "{" + strings.Join(fields, ": ..., ") + ": ...}"
	if n.Kind != yaml.SequenceNode {
		return []Problem{{l.place(n), key, "is " + kindOf(n) + ", not a list", "write a list of " + form}}
	}
	var problems []Problem
	for i, item := range n.Content {
		where := fmt.Sprintf("%s[%d]", key, i)
		if item.Kind != yaml.MappingNode {
			problems = append(problems, Problem{l.place(item), where, "is " + kindOf(item) + ", not a mapping", "write " + form})
			continue
		}
		texts, found := l.textFields(where, item, fields)
		if len(found) == 0 {
			found = each(where, item, texts)
		}
		problems = append(problems, found...)
	}
	return problems
}

func (l *Loaded) textFields(where string, n *yaml.Node, fields []string) (map[string]string, []Problem) {
	texts := map[string]string{}
	var problems []Problem
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, child := n.Content[i], n.Content[i+1]
		full := where + "." + name.Value
		if !slices.Contains(fields, name.Value) {
			problems = append(problems, Problem{l.place(name), full, "is not a key of the configuration", entryHint(name.Value, fields)})
			continue
		}
		if _, twice := texts[name.Value]; twice {
			problems = append(problems, Problem{l.place(name), full, "stands there twice", "keep one"})
			continue
		}
		text, err := scalar(stringValue{}, child)
		if err != nil {
			problems = append(problems, problemOf(l.place(child), full, err))
			continue
		}
		texts[name.Value] = text
	}
	return texts, problems
}

func entryHint(name string, fields []string) string {
	if strings.Contains(strings.ToLower(name), "passw") {
		return "passwords never stand in this file: use postgres.passfile"
	}
	if near := nearest(name, fields); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "an entry has the keys " + strings.Join(fields, ", ")
}
