package config

import "time"

// keysCluster are the settings of who and where: names, nodes, etcd, connections.
var keysCluster = []key{
	{"scope", `The name of the PostgreSQL cluster that is watched; with Patroni, Patroni's scope. It is part of every etcd key and of every marker and fence on the nodes, so two clusters must never share it, and it must not change later. There is no default, because a shared default is just how two clusters would come to share it.`,
		func(c *Config) value { return stringValue{&c.Scope, word} }},
	{"name", `The name of this controller, shown as the leader. Two controllers of one scope need different names. Default: the host name, which is different on each machine.`,
		func(c *Config) value { return stringValue{&c.Name, word} }},
	{"cluster.source", `Where the list of nodes comes from: static (cluster.members below) or patroni (its keys in etcd). Default static, because it needs nothing but this file.`,
		func(c *Config) value {
			return stringValue{&c.Cluster.Source, oneOf(SourceStatic, SourcePatroni)}
		}},
	{"cluster.members", `The nodes, with source static: a name for each, which appears in all output, and a libpq conninfo ("host=... port=..." or a postgresql:// URL) that reaches this one server and no pooler. Which one is the primary is found by asking. A password does not belong here: see postgres.passfile.`,
		func(c *Config) value { return membersValue{&c.Cluster.Members} }},
	{"cluster.patroni.namespace", `Patroni's namespace, the first part of its etcd keys. Default /service, which is Patroni's own.`,
		func(c *Config) value { return stringValue{&c.Cluster.Patroni.Namespace, keyPrefix} }},
	{"cluster.patroni.rest.username", `The user of Patroni's REST API, where it asks for one. Default none.`,
		func(c *Config) value { return stringValue{p: &c.Cluster.Patroni.REST.Username} }},
	{"cluster.patroni.rest.password_file", `The file whose first line is the password of that user. Readable by its owner only.`,
		func(c *Config) value {
			return pathValue{stringValue{p: &c.Cluster.Patroni.REST.PasswordFile}}
		}},
	{"cluster.patroni.rest.ca_file", `The certificates that may have signed the REST API's. Default: those that the machine trusts.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.Cluster.Patroni.REST.CAFile}} }},
	{"cluster.patroni.rest.cert_file", `The certificate to show to the REST API, where it asks for one.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.Cluster.Patroni.REST.CertFile}} }},
	{"cluster.patroni.rest.key_file", `The private key of that certificate. Readable by its owner only.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.Cluster.Patroni.REST.KeyFile}} }},

	{"etcd.endpoints", `The etcd servers that keep leadership and ledger: host:port, or http:// or https:// URLs. Default none: the controller then runs an etcd server of its own on the loopback interface, with its data in etcd.data_dir. That serves a single controller; two controllers that shall replace one another need a real etcd.`,
		func(c *Config) value { return listValue{p: &c.Etcd.Endpoints, check: endpoint, mask: maskEndpoint} }},
	{"etcd.data_dir", `The folder of the embedded server's data and of the file "endpoint" with its address. Keep it: another folder is another store, and the nodes refuse it. Default slotkeeper-data, beside this file.`,
		func(c *Config) value { return pathValue{stringValue{&c.Etcd.DataDir, notEmpty}} }},
	{"etcd.prefix", `The first part of all etcd keys that slotkeeper writes. Default /slotkeeper, beside Patroni's /service.`,
		func(c *Config) value { return stringValue{&c.Etcd.Prefix, keyPrefix} }},
	{"etcd.lease_ttl", `How long a leader that falls silent keeps its leadership, in whole seconds because etcd counts in them. The leader itself stops writing a fifth earlier. Shorter means a quicker change of leader and more often a needless one. Default 10s: three lost keep-alives and some clock drift.`,
		func(c *Config) value {
			return durationValue{&c.Etcd.LeaseTTL, 2 * time.Second, 10 * time.Minute, time.Second}
		}},
	{"etcd.username", `The etcd user, where etcd asks for one. Default none.`,
		func(c *Config) value { return stringValue{p: &c.Etcd.Username} }},
	{"etcd.password_file", `The file whose first line is the password of that user. Readable by its owner only.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.Etcd.PasswordFile}} }},
	{"etcd.ca_file", `The certificates that may have signed etcd's. Default: those that the machine trusts.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.Etcd.CAFile}} }},
	{"etcd.cert_file", `The certificate to show to etcd, where it asks for one.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.Etcd.CertFile}} }},
	{"etcd.key_file", `The private key of that certificate. Readable by its owner only.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.Etcd.KeyFile}} }},

	{"postgres.user", `The role on every node: it needs REPLICATION, and EXECUTE on the extension's functions; no superuser. A user in a member's conninfo wins. Default postgres, because that one exists.`,
		func(c *Config) value { return stringValue{&c.Postgres.User, notEmpty} }},
	{"postgres.dbname", `The database in which the extension slotkeeper was created. Default postgres.`,
		func(c *Config) value { return stringValue{&c.Postgres.DBName, notEmpty} }},
	{"postgres.passfile", `A libpq password file (host:port:database:user:password lines). Readable by its owner only, as libpq wants it. Default: what PGPASSFILE names, else ~/.pgpass.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.Postgres.Passfile}} }},
	{"postgres.sslmode", `libpq's sslmode: disable, allow, prefer, require, verify-ca or verify-full. Default prefer, as in libpq; in an untrusted network use verify-full.`,
		func(c *Config) value {
			return stringValue{&c.Postgres.SSLMode, oneOf("disable", "allow", "prefer", "require", "verify-ca", "verify-full")}
		}},
	{"postgres.connect_timeout", `The longest wait for one connection to one node. A node that does not answer in this time is unreachable, and the others go on. Default 3s: two lost SYN packets are resent within it.`,
		func(c *Config) value {
			return durationValue{&c.Postgres.ConnectTimeout, 100 * time.Millisecond, time.Minute, 0}
		}},
	{"postgres.query_timeout", `The longest wait for one answer of one node. Default 2s: reads take milliseconds, and a move of many slots is a few fsyncs for each.`,
		func(c *Config) value {
			return durationValue{&c.Postgres.QueryTimeout, 100 * time.Millisecond, time.Minute, 0}
		}},
}

func maskEndpoint(s string) string {
	if endpoint(s) == nil {
		return s
	}
	return maskURL(s)
}
