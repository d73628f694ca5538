package patroni

import (
	"fmt"
	"strings"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Config is the dynamic configuration, as far as slotkeeper looks at it.
type Config struct {
	Paused         bool
	TTL            time.Duration // of the leader key
	LoopWait       time.Duration
	RetryTimeout   time.Duration
	MaximumLag     int64 // maximum_lag_on_failover, bytes
	Failsafe       bool
	StandbyCluster bool
	Synchronous    bool // also by quorum
	Quorum         bool
	Strict         bool // no write without a synchronous standby
	UseSlots       bool
	// Feedback is hot_standby_feedback where the dynamic configuration sets it.
	Feedback cluster.Opt[bool]
	Slots    cluster.SlotRules
}

// Patroni's own defaults.
func defaultConfig() Config {
	return Config{
		TTL: 30 * time.Second, LoopWait: 10 * time.Second, RetryTimeout: 10 * time.Second,
		MaximumLag: 1 << 20, UseSlots: true,
		Slots: cluster.SlotRules{Unusable: "Patroni's dynamic configuration is not there"},
	}
}

func parseConfig(value []byte) (Config, error) {
	c := defaultConfig()
	o, err := parseObject(value)
	if err != nil {
		// Patroni goes on with the last one that it could read, which nobody here knows.
		c.Slots.Unusable = "Patroni's dynamic configuration cannot be read"
		return c, err
	}
	c.Paused, c.Failsafe = o.on("pause"), o.on("failsafe_mode")
	c.TTL, c.LoopWait, c.RetryTimeout = o.seconds("ttl", c.TTL), o.seconds("loop_wait", c.LoopWait), o.seconds("retry_timeout", c.RetryTimeout)
	c.MaximumLag = o.int("maximum_lag_on_failover", c.MaximumLag)
	remote := o.object("standby_cluster")
	c.StandbyCluster = truth(remote["host"]) || truth(remote["port"]) || truth(remote["restore_command"])
	c.Quorum = strings.EqualFold(text(o["synchronous_mode"]), "quorum") && !c.StandbyCluster
	c.Synchronous = (o.on("synchronous_mode") || c.Quorum) && !c.StandbyCluster
	c.Strict = o.on("synchronous_mode_strict")
	postgresql := o.object("postgresql")
	if v, given := postgresql["use_slots"]; given {
		c.UseSlots, _ = switched(v)
	}
	if on, ok := switched(postgresql.object("parameters")["hot_standby_feedback"]); ok {
		c.Feedback = cluster.Some(on)
	}
	c.Slots = parseSlotRules(o, postgresql)
	if v := o["postgresql"]; truth(v) && postgresql == nil {
		return c, fmt.Errorf("postgresql in it is %s, not a mapping", kindOf(v))
	}
	return c, nil
}

func (o object) seconds(name string, otherwise time.Duration) time.Duration {
	n, ok := integer(o[name])
	if !ok || n <= 0 || n > 1<<31 {
		return otherwise
	}
	return time.Duration(n) * time.Second
}
