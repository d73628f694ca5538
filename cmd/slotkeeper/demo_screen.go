package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

// redrawEvery bounds how often the live table changes: an eye sees no more.
const redrawEvery = 200 * time.Millisecond

// screen shows the demo's progress with the live table of verdicts under it. On
// a terminal the table stays at the bottom and is drawn over; elsewhere it is
// written when a verdict changes.
type screen struct {
	w        io.Writer
	terminal bool
	began    time.Time

	mu       sync.Mutex
	table    []byte // as it stands on the terminal
	drawn    time.Time
	verdicts string
}

func newScreen(w io.Writer) *screen {
	return &screen{w: w, terminal: output.IsTerminal(w), began: time.Now()}
}

// progress writes a line above the table. Errors of writing to the standard
// error have nowhere to go.
func (s *screen) progress(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintf(s.w, "%6.1fs  %s\n", time.Since(s.began).Seconds(), line)
	if s.terminal {
		_, _ = s.w.Write(s.table)
	}
}

// document shows what the controller tells.
func (s *screen) document(d lab.Document) {
	var all status.Status
	if json.Unmarshal(d.Raw, &all) == nil { // else the next one may be whole
		s.status(all)
	}
}

func (s *screen) status(document status.Status) {
	result, verdicts := statusRows(document)
	if len(result.Rows) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := verdicts != s.verdicts
	if !changed && (!s.terminal || time.Since(s.drawn) < redrawEvery) {
		return
	}
	var table bytes.Buffer
	if err := output.Write(&table, output.Table, result); err != nil {
		return // a buffer takes everything
	}
	s.erase()
	_, _ = s.w.Write(table.Bytes())
	s.verdicts, s.drawn = verdicts, time.Now()
	if s.terminal {
		s.table = table.Bytes()
	}
}

// clear takes the table away.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.table, s.verdicts = nil, ""
}

func (s *screen) erase() {
	if lines := bytes.Count(s.table, []byte("\n")); lines > 0 {
		fmt.Fprintf(s.w, "\x1b[%dA\x1b[J", lines) // up, and empty from there on
	}
}

// statusRows is the document as a table, and its verdicts alone as a text.
func statusRows(document status.Status) (output.Result, string) {
	result := output.Result{Header: []string{"slot", "standby", "verdict", "reason", "mirror", "lag", "cycle"}}
	verdicts := ""
	for _, slot := range document.Slots {
		for _, pair := range slot.Standbys {
			mirror, lag := "-", "-"
			if pair.Mirror.OK {
				mirror = pair.Mirror.V.Confirmed.String()
			}
			if pair.LagBytes.OK {
				lag = fmt.Sprint(pair.LagBytes.V)
			}
			result.Rows = append(result.Rows, []string{
				slot.Name, pair.Node, string(pair.Verdict), string(pair.Reason), mirror, lag, fmt.Sprint(document.Cycle),
			})
			verdicts += fmt.Sprintf("%s %s %s %s\n", slot.Name, pair.Node, pair.Verdict, pair.Reason)
		}
	}
	return result, verdicts
}
