package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// pair and pairs are a mapping that keeps its order.
type pair struct{ name, value string }
type pairs []pair

func (p pairs) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, kv := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(kv.name) // a string cannot fail
		value, _ := json.Marshal(kv.value)
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Setting is one value of a configuration, as it is shown: without secrets.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
	Doc    string `json:"doc,omitempty"`
}

// Text gives the value on one line.
func (s Setting) Text() string {
	switch v := s.Value.(type) {
	case string:
		return v
	case int:
		return fmt.Sprint(v)
	}
	b, err := json.Marshal(s.Value)
	if err != nil {
		return fmt.Sprint(s.Value)
	}
	return string(b)
}

// Settings gives all values in the order of the documentation.
func (l *Loaded) Settings() []Setting {
	out := make([]Setting, 0, len(keys))
	for _, k := range keys {
		out = append(out, Setting{Key: k.path, Value: k.v(l.Config).show(), Origin: l.Origins[k.path].String(), Doc: k.doc})
	}
	return out
}

// Tree gives all values as nested mappings.
func (l *Loaded) Tree() map[string]any {
	root := map[string]any{}
	for _, s := range l.Settings() {
		parts := strings.Split(s.Key, ".")
		at := root
		for _, part := range parts[:len(parts)-1] {
			next, ok := at[part].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[part] = next
			}
			at = next
		}
		at[parts[len(parts)-1]] = s.Value
	}
	return root
}

// YAML gives a complete configuration file with the values in force, each with
// its origin and its documentation as comments if they are asked for.
func (l *Loaded) YAML(origin, doc bool) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{"": root}
	for _, s := range l.Settings() {
		at, name := sectionOf(sections, s.Key)
		value, err := nodeOf(s.Value)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", s.Key, err)
		}
		k := text(name)
		if origin {
			comment := &value.LineComment
			if value.Kind == yaml.SequenceNode && len(value.Content) > 0 {
				comment = &k.HeadComment
			}
			*comment = "# " + s.Origin
		}
		if doc {
			k.HeadComment = wrap(s.Doc, 76)
		}
		at.Content = append(at.Content, k, value)
	}
	return yaml.Dump(root)
}

func sectionOf(sections map[string]*yaml.Node, path string) (*yaml.Node, string) {
	i := strings.LastIndex(path, ".")
	if i < 0 {
		return sections[""], path
	}
	parent := path[:i]
	if _, ok := sections[parent]; !ok {
		above, name := sectionOf(sections, parent)
		node := &yaml.Node{Kind: yaml.MappingNode}
		above.Content = append(above.Content, text(name), node)
		sections[parent] = node
	}
	return sections[parent], path[i+1:]
}

func text(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

func nodeOf(v any) (*yaml.Node, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Load(b, &doc); err != nil {
		return nil, err
	}
	n := doc.Content[0]
	plain(n)
	return n, nil
}

// plain takes the quotes of JSON off; the writer puts back those that YAML
// needs. Words that older readers take for booleans keep theirs.
func plain(n *yaml.Node) {
	switch {
	case n.Kind == yaml.SequenceNode:
		n.Style = 0
	case n.Kind == yaml.ScalarNode && !slices.Contains([]string{"", "y", "n", "yes", "no", "on", "off"}, strings.ToLower(n.Value)):
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}

// wrap breaks a paragraph into comment lines.
func wrap(s string, width int) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(s) {
		if column == 0 || column+1+len(word) > width {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteByte('#')
			column = 1
		}
		b.WriteByte(' ')
		b.WriteString(word)
		column += 1 + len(word)
	}
	return b.String()
}
