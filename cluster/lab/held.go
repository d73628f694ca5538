package lab

import "sync"

// held is the process of something that is started and stopped again and again.
type held struct {
	holding sync.Mutex
	process *process // nil unless it was started
}

func (h *held) hold(p *process) {
	h.holding.Lock()
	defer h.holding.Unlock()
	h.process = p
}

func (h *held) running() *process {
	h.holding.Lock()
	defer h.holding.Unlock()
	if h.process == nil || !h.process.alive() {
		return nil
	}
	return h.process
}

// Running reports whether the process is there, frozen or not.
func (h *held) Running() bool { return h.running() != nil }

// PID is the process id, 0 when it is not running. Of a node it is the postmaster's.
func (h *held) PID() int {
	if p := h.running(); p != nil {
		return p.pid()
	}
	return 0
}
