package config

import (
	"fmt"
	"os"
	"strings"
)

// relations checks what no field can check alone. It runs only where every
// field is right by itself.
func (l *Loaded) relations() []Problem {
	var p []Problem
	add := func(key, text, want string) {
		place := l.Origins[key].Detail
		switch l.Origins[key].Source {
		case "default":
			place = l.File
		case "environment", "flag":
			place = l.Origins[key].String()
		}
		p = append(p, Problem{place, key, text, want})
	}
	c := l.Config
	if c.Scope == "" {
		add("scope", "is missing", "name the cluster: scope: shop (with Patroni, Patroni's scope)")
	}
	if c.Name == "" {
		add("name", "is empty and the machine has no host name", "write one")
	}
	l.checkTopology(add)
	l.checkTimes(add)
	l.checkPairs(add)
	if len(c.Slots.Include) == 0 {
		add("slots.include", "is empty, so no slot would be kept", `write [{name: "*"}] for all`)
	}
	return p
}

type adder func(key, text, want string)

func (l *Loaded) checkTopology(add adder) {
	c := l.Config
	if c.Cluster.Source == SourcePatroni {
		if c.Etcd.Embedded() {
			add("etcd.endpoints", "is empty, and cluster.source is patroni", "name the etcd servers that Patroni uses")
		}
		if len(c.Cluster.Members) > 0 {
			add("cluster.members", "is given, and cluster.source is patroni", "take the members out, Patroni names them")
		}
		if folder(c.Cluster.Patroni.Namespace) == folder(c.Etcd.Prefix) {
			add("etcd.prefix", "is Patroni's namespace too", "give slotkeeper's keys a place of their own")
		}
		return
	}
	if len(c.Cluster.Members) == 0 {
		add("cluster.members", "is empty", `name the nodes: [{name: a, conninfo: "host=... port=..."}, ...]`)
	}
}

// folder is a path of etcd with one slash between its parts.
func folder(path string) string {
	return strings.Join(strings.FieldsFunc(path, func(r rune) bool { return r == '/' }), "/")
}

func (l *Loaded) checkTimes(add adder) {
	c := l.Config
	if c.Sync.MinGap > c.Sync.Interval {
		add("sync.min_gap", fmt.Sprintf("%s is longer than sync.interval (%s)", FormatDuration(c.Sync.MinGap), FormatDuration(c.Sync.Interval)), "make it at most that long")
	}
	if c.Sync.CycleTimeout <= c.Postgres.QueryTimeout {
		add("sync.cycle_timeout", fmt.Sprintf("%s is not longer than postgres.query_timeout (%s)", FormatDuration(c.Sync.CycleTimeout), FormatDuration(c.Postgres.QueryTimeout)), "make it longer, or one slow node ends every cycle")
	}
	if c.Sync.CycleTimeout <= c.Postgres.ConnectTimeout {
		add("sync.cycle_timeout", fmt.Sprintf("%s is not longer than postgres.connect_timeout (%s)", FormatDuration(c.Sync.CycleTimeout), FormatDuration(c.Postgres.ConnectTimeout)), "make it longer, or one unreachable node ends every cycle")
	}
}

func (l *Loaded) checkPairs(add adder) {
	c := l.Config
	both := func(a, av, b, bv string) {
		if (av == "") == (bv == "") {
			return
		}
		if av == "" {
			a, b = b, a
		}
		add(a, "is given without "+b, "give both or none")
	}
	rest := c.Cluster.Patroni.REST
	both("cluster.patroni.rest.username", rest.Username, "cluster.patroni.rest.password_file", rest.PasswordFile)
	both("cluster.patroni.rest.cert_file", rest.CertFile, "cluster.patroni.rest.key_file", rest.KeyFile)
	both("etcd.username", c.Etcd.Username, "etcd.password_file", c.Etcd.PasswordFile)
	both("etcd.cert_file", c.Etcd.CertFile, "etcd.key_file", c.Etcd.KeyFile)
	both("http.tls.cert_file", c.HTTP.TLS.CertFile, "http.tls.key_file", c.HTTP.TLS.KeyFile)
	both("http.username", c.HTTP.Username, "http.password_file", c.HTTP.PasswordFile)
	if c.Etcd.Embedded() && c.Etcd.Username != "" {
		add("etcd.username", "is given without etcd.endpoints", "the embedded server has no users: take it out, or name the endpoints")
	}
}

// CheckFiles looks at the files that the configuration names, before anything is
// begun: that they are there, and that what is secret is not readable by others.
func (c *Config) CheckFiles() error {
	var problems []Problem
	check := func(key, file string, secret bool) {
		if file == "" {
			return
		}
		if err := checkFile(file, secret); err != nil {
			problems = append(problems, problemOf(c.File, key, err))
		}
	}
	rest := c.Cluster.Patroni.REST
	check("postgres.passfile", c.Postgres.Passfile, true)
	check("etcd.password_file", c.Etcd.PasswordFile, true)
	check("etcd.ca_file", c.Etcd.CAFile, false)
	check("etcd.cert_file", c.Etcd.CertFile, false)
	check("etcd.key_file", c.Etcd.KeyFile, true)
	check("http.tls.cert_file", c.HTTP.TLS.CertFile, false)
	check("http.tls.key_file", c.HTTP.TLS.KeyFile, true)
	check("http.password_file", c.HTTP.PasswordFile, true)
	check("cluster.patroni.rest.password_file", rest.PasswordFile, true)
	check("cluster.patroni.rest.ca_file", rest.CAFile, false)
	check("cluster.patroni.rest.cert_file", rest.CertFile, false)
	check("cluster.patroni.rest.key_file", rest.KeyFile, true)
	if len(problems) > 0 {
		return &Error{problems}
	}
	return nil
}

func checkFile(name string, secret bool) error {
	info, err := os.Stat(name)
	if err != nil {
		return wrongf("create it, or correct the name (a relative one is relative to the configuration file)", "%s: %v", name, bare(err))
	}
	if !info.Mode().IsRegular() {
		return wrongf("name one", "%s is no regular file", name)
	}
	if secret {
		return checkMode(name, info)
	}
	return nil
}
