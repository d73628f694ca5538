package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller"
	"github.com/slotkeeper/slotkeeper/controller/plan"
)

// newLogger writes to w what the configuration wants, in its form.
func newLogger(c *config.Config, w io.Writer) hclog.Logger {
	terminal := output.IsTerminal(w)
	o := &hclog.LoggerOptions{
		Name:       "slotkeeper",
		Level:      hclog.LevelFromString(c.Log.Level),
		Output:     w,
		JSONFormat: c.Log.Format == "json" || (c.Log.Format == "auto" && !terminal),
	}
	if terminal && !o.JSONFormat {
		o.Color = hclog.ForceColor
	}
	return hclog.New(o)
}

// quietLogger is for commands whose result is what they print: it passes on
// what deserves attention.
func quietLogger(w io.Writer) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "slotkeeper", Level: hclog.Error, Output: w})
}

// policy is what decisions depend on.
func policy(c *config.Config) plan.Policy {
	return plan.Policy{
		Scope:      c.Scope,
		Owner:      c.Name,
		Include:    matches(c.Slots.Include),
		Exclude:    matches(c.Slots.Exclude),
		Interval:   c.Sync.Interval,
		MaxHoldAge: c.Protection.MaxHoldAge,
		MaxWalk:    plan.DefaultMaxWalk,
		RaiseEvery: plan.DefaultRaiseEvery,
		StaleAfter: staleAfter(c),
		LeaseTTL:   c.Etcd.LeaseTTL,

		ManageStandbySlots: c.Protection.SynchronizedStandbySlots == config.Manage,
		ManageOldSessions:  c.Protection.OldSessions == config.Manage,
	}
}

func matches(from []config.Match) []plan.Match {
	out := make([]plan.Match, 0, len(from))
	for _, m := range from {
		out = append(out, plan.Match(m))
	}
	return out
}

// loopConfig is what the loop needs. A read may have to connect first.
func loopConfig(c *config.Config) controller.Config {
	return controller.Config{
		Policy:       policy(c),
		Interval:     c.Sync.Interval,
		MinGap:       c.Sync.MinGap,
		ReadTimeout:  c.Postgres.ConnectTimeout + c.Postgres.QueryTimeout,
		CycleTimeout: c.Sync.CycleTimeout,
	}
}

// newController puts a loop together. elect is nil for one that never leads.
func newController(c *config.Config, source controller.Source, elect controller.Elector, log hclog.Logger) *controller.Controller {
	return controller.New(loopConfig(c), loopDeps(c, source, elect, log))
}

func loopDeps(c *config.Config, source controller.Source, elect controller.Elector, log hclog.Logger) controller.Deps {
	return controller.Deps{Source: source, Dial: dialer(c), Elector: elect, Logger: log}
}

// listenerURL is where others reach this daemon's listener, "" where it has none.
func listenerURL(c *config.Config, bound net.Addr) string {
	if bound == nil {
		return ""
	}
	host, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return scheme(c) + "://" + net.JoinHostPort(host, port)
}

func scheme(c *config.Config) string {
	if c.HTTP.TLS.CertFile != "" {
		return "https"
	}
	return "http"
}

// oneLine is for texts of others that go into one line of output.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
