package config

import "strings"

// key is one setting: its name in the file, what it means, and where it lives.
type key struct {
	path string
	doc  string
	v    func(*Config) value
}

// env is the name of the environment variable, "" for what only the file can say.
func (k key) env(c *Config) string {
	switch k.v(c).(type) {
	case membersValue, matchesValue:
		return ""
	}
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

// EnvPrefix begins the name of each environment variable of slotkeeper's.
const EnvPrefix = "SLOTKEEPER_"

// keys are all settings, in the order in which they are shown.
var keys = concat(keysCluster, keysSync, keysOutside)

func concat(lists ...[]key) []key {
	var all []key
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func findKey(path string) (key, bool) {
	for _, k := range keys {
		if k.path == path {
			return k, true
		}
	}
	return key{}, false
}

// isSection reports whether path is a mapping that holds keys.
func isSection(path string) bool {
	for _, k := range keys {
		if strings.HasPrefix(k.path, path+".") {
			return true
		}
	}
	return false
}

// children gives the names that may stand in the mapping at path, "" for the top.
func children(path string) []string {
	prefix := ""
	if path != "" {
		prefix = path + "."
	}
	var names []string
	seen := map[string]bool{}
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k.path, prefix)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ".")
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
