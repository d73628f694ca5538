package main

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
)

// notifier tells systemd how this process is (sd_notify(3)); where systemd did not
// start it, it does nothing. The watchdog is fed by work that has ended well and by
// nothing else: a clock would go on feeding it beside a loop that hangs.
type notifier struct {
	log  hclog.Logger
	send func(state string) error

	mu      sync.Mutex
	limit   time.Duration // of the watchdog; 0: there is none
	ready   bool
	said    string // the last STATUS
	fed     time.Time
	failing bool
}

func newNotifier(getenv func(string) string, log hclog.Logger) *notifier {
	n := &notifier{log: log, send: func(string) error { return nil }}
	if getenv("NOTIFY_SOCKET") == "" {
		return n
	}
	n.send = func(state string) error {
		_, err := sd.SdNotify(false, state)
		return err
	}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
		n.limit = time.Duration(usec) * time.Microsecond
	}
	return n
}

// allow has the watchdog wait for as long as a healthy loop may need: a
// sync.interval of minutes must not look like a hang.
func (n *notifier) allow(healthy time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.limit > 0 && n.limit < healthy {
		n.limit = healthy
		n.tell(fmt.Sprintf("WATCHDOG_USEC=%d", healthy.Microseconds()))
	}
}

// alive is for the loop: something has ended well.
func (n *notifier) alive(leading bool) {
	status := "waits to lead"
	if leading {
		status = "leads"
	}
	n.status(status)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ready {
		n.ready = true
		n.tell("READY=1")
	}
	// Cycles may follow one another in milliseconds.
	if now := time.Now(); n.limit > 0 && now.Sub(n.fed) >= n.limit/8 {
		n.fed = now
		n.tell("WATCHDOG=1")
	}
}

// status is what `systemctl status` shows.
func (n *notifier) status(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.said != text {
		n.said = text
		n.tell("STATUS=" + text)
	}
}

func (n *notifier) stopping() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell("STOPPING=1")
}

// tell logs the first failure of a row.
func (n *notifier) tell(state string) {
	err := n.send(state)
	if err != nil && !n.failing {
		n.log.Warn("systemd cannot be told", "state", state, "error", err)
	}
	n.failing = err != nil
}
