package config

import "time"

// keysOutside are the settings of what slotkeeper says to the world.
var keysOutside = []key{
	{"alerts.webhooks", `URLs that get a POST with each alert. Their paths may be secrets, so only scheme and host are ever shown. Default none.`,
		func(c *Config) value { return listValue{p: &c.Alerts.Webhooks, check: httpURL, mask: maskURL} }},
	{"alerts.alertmanager", `The URL of a Prometheus Alertmanager that gets the alerts. Default none.`,
		func(c *Config) value { return urlValue{stringValue{&c.Alerts.Alertmanager, httpURL}} }},
	{"alerts.grace", `How long something must be wrong before it is an alert. Default 30s: a restart of a standby is not worth waking anybody.`,
		func(c *Config) value { return durationValue{&c.Alerts.Grace, 0, time.Hour, 0} }},

	{"http.listen", `Where the daemon serves /status, /sync, /forget, /metrics, /liveness, /readiness and the page. "" for nowhere. Default 127.0.0.1:8009: the loopback interface, because without http.username anybody who reaches it may ask for a cycle, or give a member up that is away. There, without http.username, it answers only to loopback names and addresses in the request's Host, so that no web page can reach it through a browser.`,
		func(c *Config) value { return stringValue{&c.HTTP.Listen, listenAddress} }},
	{"http.tls.cert_file", `The certificate of the listener. Default none: plain HTTP.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.HTTP.TLS.CertFile}} }},
	{"http.tls.key_file", `The private key of that certificate. Readable by its owner only.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.HTTP.TLS.KeyFile}} }},
	{"http.username", `The user that every request but /liveness and /readiness must name. Default none: everybody may ask.`,
		func(c *Config) value { return stringValue{p: &c.HTTP.Username} }},
	{"http.password_file", `The file whose first line is the password of that user. Readable by its owner only.`,
		func(c *Config) value { return pathValue{stringValue{p: &c.HTTP.PasswordFile}} }},

	{"log.level", `The least important message that is logged: debug, info, warn or error. Default info: transitions, not repeats.`,
		func(c *Config) value { return stringValue{&c.Log.Level, oneOf("debug", "info", "warn", "error")} }},
	{"log.format", `text, json, or auto: text on a terminal, else JSON. Default auto.`,
		func(c *Config) value { return stringValue{&c.Log.Format, oneOf("auto", "text", "json")} }},
}
