package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// DefaultFile is read when neither --config nor SLOTKEEPER_CONFIG names one.
const DefaultFile = "/etc/slotkeeper/slotkeeper.yaml"

// maxFile is far more than any configuration needs, and bounds what a wrong
// file name can make the program read.
const maxFile = 1 << 20

// Options say where a configuration comes from.
type Options struct {
	File    string            // the flag --config; "" where it was not given
	Flags   map[string]string // key to text, for the flags that stand for keys
	Environ []string          // as os.Environ gives it
}

// Loaded is a configuration, and where each of its values comes from.
type Loaded struct {
	*Config
	Origins  map[string]Origin // by key
	Warnings []string
}

// Origin is where a value comes from.
type Origin struct {
	Source string // "flag", "environment", "file" or "default"
	Detail string // the flag, the variable, or the file and line
}

func (o Origin) String() string {
	if o.Detail == "" {
		return o.Source
	}
	return o.Source + " " + o.Detail
}

// Load reads and checks a configuration. The error is an *Error, with all that
// is wrong, or says why the file cannot be read (then it is one as well).
func Load(o Options) (*Loaded, error) {
	l := &Loaded{Config: Default(), Origins: map[string]Origin{}}
	for _, k := range keys {
		l.Origins[k.path] = Origin{Source: "default"}
	}
	l.File = o.file()
	text, err := readFile(l.File)
	if err != nil {
		return nil, &Error{[]Problem{{Text: err.Error(), Want: fileHint(o)}}}
	}
	problems := l.fromFile(text)
	problems = append(problems, l.fromEnviron(o.Environ)...)
	problems = append(problems, l.fromFlags(o.Flags)...)
	if len(problems) == 0 {
		problems = l.relations()
	}
	if len(problems) > 0 {
		return nil, &Error{problems}
	}
	l.warnWithoutEffect()
	l.anchorPaths()
	return l, nil
}

// withoutEffect are keys, and beginnings of keys, that are checked and that
// nothing reads yet: a file that has them stays good for later versions.
var withoutEffect = []string{"protection.hold_for_standbys", "alerts."}

// warnWithoutEffect tells who relies on one of them, by a value other than the default.
func (l *Loaded) warnWithoutEffect() {
	unset := Default()
	for _, k := range keys {
		idle := slices.ContainsFunc(withoutEffect, func(begin string) bool { return strings.HasPrefix(k.path, begin) })
		if idle && !reflect.DeepEqual(k.v(l.Config).show(), k.v(unset).show()) {
			l.Warnings = append(l.Warnings, fmt.Sprintf("%s (%s) has no effect in this version", k.path, l.Origins[k.path].Detail))
		}
	}
}

func (o Options) file() string {
	if o.File != "" {
		return o.File
	}
	if file, ok := lookup(o.Environ, EnvPrefix+"CONFIG"); ok && file != "" {
		return file
	}
	return DefaultFile
}

func fileHint(o Options) string {
	if o.File == "" {
		return "name the configuration with --config FILE or " + EnvPrefix + "CONFIG"
	}
	return ""
}

func lookup(environ []string, name string) (string, bool) {
	for _, e := range slices.Backward(environ) {
		if k, v, ok := strings.Cut(e, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("reading configuration %s: %w", name, bare(err))
	}
	if !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0 {
		return nil, fmt.Errorf("reading configuration %s: it is no regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading configuration %s: %w", name, bare(err))
	}
	defer f.Close()
	// A pipe has no size that could be looked at before.
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading configuration %s: %w", name, bare(err))
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("reading configuration %s: it has more than %d bytes, and no configuration needs as many", name, maxFile)
	}
	return text, nil
}

// bare takes the operation and the path off: the caller has named the file.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func (l *Loaded) fromEnviron(environ []string) []Problem {
	var problems []Problem
	known := map[string]bool{EnvPrefix + "CONFIG": true}
	for _, k := range keys {
		name := k.env(l.Config)
		if name == "" {
			continue
		}
		known[name] = true
		text, ok := lookup(environ, name)
		if !ok {
			continue
		}
		if err := k.v(l.Config).set(text); err != nil {
			problems = append(problems, problemOf("environment "+name, k.path, err))
			continue
		}
		l.Origins[k.path] = Origin{"environment", name}
	}
	l.warnUnknown(environ, known)
	return problems
}

// warnUnknown does not refuse: Kubernetes sets variables such as
// SLOTKEEPER_SERVICE_HOST by itself for a service of the name slotkeeper.
func (l *Loaded) warnUnknown(environ []string, known map[string]bool) {
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, EnvPrefix) || known[name] ||
			strings.HasPrefix(name, EnvPrefix+"SERVICE_") || strings.HasPrefix(name, EnvPrefix+"PORT") {
			continue
		}
		l.Warnings = append(l.Warnings, fmt.Sprintf("environment variable %s is not known and changes nothing", name))
	}
}

func (l *Loaded) fromFlags(flags map[string]string) []Problem {
	var problems []Problem
	for _, k := range keys {
		text, ok := flags[k.path]
		if !ok {
			continue
		}
		flag := "--" + FlagName(k.path)
		if err := k.v(l.Config).set(text); err != nil {
			problems = append(problems, problemOf("flag "+flag, k.path, err))
			continue
		}
		l.Origins[k.path] = Origin{"flag", flag}
	}
	return problems
}

// FlagName gives the flag that stands for a key: http-listen for http.listen.
func FlagName(path string) string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(path)
}

func (l *Loaded) anchorPaths() {
	dir := filepath.Dir(l.File)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	for _, k := range keys {
		if p, ok := k.v(l.Config).(pathValue); ok {
			p.anchor(dir)
		}
	}
}
