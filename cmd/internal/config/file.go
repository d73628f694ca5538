package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// fromFile reads the YAML text by its node tree: only so can every problem name
// its line, and a key that stands there twice be seen.
func (l *Loaded) fromFile(text []byte) []Problem {
	root, err := singleDocument(text)
	if err != nil {
		return []Problem{problemOf(l.place(nil), "", err)}
	}
	if root == nil {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return []Problem{{Place: l.place(root), Text: "the file is not a mapping", Want: "write lines such as scope: shop"}}
	}
	return l.mapping(root, "")
}

func (l *Loaded) place(n *yaml.Node) string {
	if n == nil || n.Line == 0 {
		return l.File
	}
	return fmt.Sprintf("%s:%d", l.File, n.Line)
}

// singleDocument gives the root of the only document, nil where there is none.
func singleDocument(text []byte) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	var first, second yaml.Node
	if err := loader.Load(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntax(err)
	}
	if err := loader.Load(&second); err == nil {
		return nil, wrongf("keep one, and divide by files", "holds several YAML documents (another begins before line %d)", second.Line+1)
	} else if !errors.Is(err, io.EOF) {
		return nil, syntax(err)
	}
	root := &first
	if root.Kind == yaml.DocumentNode {
		if len(root.Content) == 0 {
			return nil, nil
		}
		root = root.Content[0]
	}
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil, nil
	}
	return root, nil
}

func syntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "go-yaml load error ")
	return wrongf("correct the YAML there (L is the line, C the column)", "is not YAML: %s", text)
}

func (l *Loaded) mapping(n *yaml.Node, path string) []Problem {
	var problems []Problem
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, child := n.Content[i], n.Content[i+1]
		full := name.Value
		if path != "" {
			full = path + "." + name.Value
		}
		if first, twice := lines[name.Value]; twice {
			problems = append(problems, Problem{l.place(name), full, fmt.Sprintf("stands there twice, first in line %d", first), "keep one"})
			continue
		}
		lines[name.Value] = name.Line
		problems = append(problems, l.entry(name, child, full, path)...)
	}
	return problems
}

func (l *Loaded) entry(name, n *yaml.Node, full, path string) []Problem {
	k, isKey := findKey(full)
	section := !isKey && isSection(full)
	switch {
	case name.Kind != yaml.ScalarNode || (!isKey && !section):
		return []Problem{{l.place(name), full, "is not a key of the configuration", unknownHint(name.Value, path)}}
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return []Problem{{l.place(n), full, "uses a YAML anchor or alias", "write the value itself"}}
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return []Problem{{l.place(name), full, "has no value", "write one, or take the line away to have the default"}}
	case section && n.Kind != yaml.MappingNode:
		return []Problem{{l.place(n), full, "is " + kindOf(n) + ", not a mapping", "it has the keys " + strings.Join(children(full), ", ")}}
	case section:
		return l.mapping(n, full)
	}
	problems := l.setNode(k, n)
	if len(problems) == 0 {
		l.Origins[k.path] = Origin{"file", l.place(name)}
	}
	return problems
}

func (l *Loaded) setNode(k key, n *yaml.Node) []Problem {
	v := k.v(l.Config)
	switch v := v.(type) {
	case membersValue:
		return v.fromNode(l, k.path, n)
	case matchesValue:
		return v.fromNode(l, k.path, n)
	case listValue:
		return l.setList(k, v, n)
	}
	text, err := scalar(v, n)
	if err == nil {
		err = v.set(text)
	}
	if err != nil {
		return []Problem{problemOf(l.place(n), k.path, err)}
	}
	return nil
}

func (l *Loaded) setList(k key, v listValue, n *yaml.Node) []Problem {
	if n.Kind != yaml.SequenceNode {
		return []Problem{{l.place(n), k.path, "is " + kindOf(n) + ", not a list", "write [one, two] or []"}}
	}
	var items []string
	for _, item := range n.Content {
		text, err := scalar(v, item)
		if err != nil {
			return []Problem{problemOf(l.place(item), k.path, err)}
		}
		items = append(items, text)
	}
	if err := v.setList(items); err != nil {
		return []Problem{problemOf(l.place(n), k.path, err)}
	}
	return nil
}

// scalar gives the text of a node, and refuses what YAML takes for another type
// than the value has: a bare 010, yes or 1.5 is seldom the text that was meant.
func scalar(v value, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", wrongf("write a single value", "is %s", kindOf(n))
	}
	tag := n.ShortTag()
	if tag == "!!str" {
		return n.Value, nil
	}
	if t, ok := v.(typed); ok && tag == t.tag() {
		return n.Value, nil
	}
	switch v.(type) {
	case durationValue, intValue:
		return n.Value, nil // their own check says best what is wrong
	}
	return "", wrongf(fmt.Sprintf("if the text is meant, write it in quotes: %q", n.Value), "%s is %s, not text", n.Value, kindOf(n))
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a boolean"
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "a date"
	}
	return "a single value"
}

// unknownHint never repeats a value: an unknown key may well be a password.
func unknownHint(name, path string) string {
	names := children(path)
	if strings.Contains(strings.ToLower(name), "passw") {
		return "passwords never stand in this file: use postgres.passfile, etcd.password_file, http.password_file or cluster.patroni.rest.password_file"
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if path == "" {
		return "the keys at the top are " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s has the keys %s", path, strings.Join(names, ", "))
}
