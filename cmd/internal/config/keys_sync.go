package config

import "time"

// keysSync are the settings of what is kept, how fast, and how far.
var keysSync = []key{
	{"slots.include", `Which logical slots of the primary are kept: those that match one of these. Each entry has globs (* ? [a-z]) on name, database and plugin, of which all that are given must match. Default: all slots.`,
		func(c *Config) value { return matchesValue{&c.Slots.Include} }},
	{"slots.exclude", `Which of them are left alone all the same. Default none.`,
		func(c *Config) value { return matchesValue{&c.Slots.Exclude} }},

	{"sync.interval", `The longest wait between two cycles when nothing seems to move. A new slot is safe after two of them at most. Default 1s: the work of an idle cycle is a read of each node.`,
		func(c *Config) value {
			return durationValue{&c.Sync.Interval, 10 * time.Millisecond, time.Hour, 0}
		}},
	{"sync.min_gap", `The shortest wait between two cycles while something moves. It decides how far mirrors follow behind. At most sync.interval. Default 20ms: less gains nothing over the time that a cycle takes.`,
		func(c *Config) value {
			return durationValue{&c.Sync.MinGap, time.Millisecond, time.Hour, 0}
		}},
	{"sync.cycle_timeout", `The longest that one cycle may take; what has not answered by then is unreachable in this cycle. More than postgres.query_timeout and postgres.connect_timeout, or a single slow node could end every cycle. Default 5s: both of them together.`,
		func(c *Config) value {
			return durationValue{&c.Sync.CycleTimeout, 200 * time.Millisecond, 10 * time.Minute, 0}
		}},

	{"promotion.policy", `What the promotion gate does with a node that would lose a slot: prefer (refuse only while a safe node could be promoted instead), strict (always refuse) or observe (never). Default prefer: availability first, but not for nothing.`,
		func(c *Config) value {
			return stringValue{&c.Promotion.Policy, oneOf("prefer", "strict", "observe")}
		}},
	{"promotion.max_refusals", `How often the gate may refuse in one failover before it lets the node go. Default 3.`,
		func(c *Config) value { return intValue{&c.Promotion.MaxRefusals, 0, 100} }},
	{"promotion.deadline", `The gate answers within this time, whatever happens. Default 5s: Patroni waits for it without a limit of its own.`,
		func(c *Config) value {
			return durationValue{&c.Promotion.Deadline, 100 * time.Millisecond, 5 * time.Minute, 0}
		}},
	{"promotion.max_proof_age", `How old the last proof of a mirror may be for the gate to count it. Default 5m: longer than a restart of the controller, shorter than an outage that nobody noticed.`,
		func(c *Config) value {
			return durationValue{&c.Promotion.MaxProofAge, time.Second, 24 * time.Hour, 0}
		}},

	{"protection.max_hold_age", `How long a standby that is away keeps the catalog rows held that its mirrors need. After that it is given up, and its mirrors are made anew when it is back. Default 1h: longer than a reboot or a minor upgrade; catalogs bloat meanwhile.`,
		func(c *Config) value {
			return durationValue{&c.Protection.MaxHoldAge, time.Second, 30 * 24 * time.Hour, 0}
		}},
	{"protection.synchronized_standby_slots", `PostgreSQL 17 and later: observe the setting of this name, and tell which entry holds consumers back, or manage it: keep it to the slots of the standbys that stream and may be promoted. Managing needs a superuser to grant slotkeeper's role ALTER SYSTEM on it and pg_reload_conf(). Default observe: it can hold back every consumer.`,
		func(c *Config) value {
			return stringValue{&c.Protection.SynchronizedStandbySlots, oneOf("observe", Manage)}
		}},
	{"protection.old_sessions", `PostgreSQL 14 and later: sessions of a standby that began before slotkeeper_hold there can spoil a new mirror after a promotion. Observe: the mirror waits until they have ended, and old_session names them; Patroni's own idle ones are ended, it connects anew. Manage: every idle one is ended, once for each hold that is made. Default observe.`,
		func(c *Config) value {
			return stringValue{&c.Protection.OldSessions, oneOf("observe", Manage)}
		}},
	{"protection.hold_for_standbys", `Before PostgreSQL 17: observe, or manage, that consumers do not get ahead of the standbys. Default observe, for the same reason.`,
		func(c *Config) value {
			return stringValue{&c.Protection.HoldForStandbys, oneOf("observe", "manage")}
		}},
}
