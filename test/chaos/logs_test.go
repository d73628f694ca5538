package chaos

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// alarm is what no fault here may bring about: only SIGKILL ends processes, and no
// disk is full. The word stands where PostgreSQL puts the level of a message.
var alarm = regexp.MustCompile(`\] .*(PANIC:|TRAP:)|terminated by signal (4|6|7|8|11)\b|^panic: |^fatal error: |WARNING: DATA RACE`)

// readLogs looks through the messages of all servers, copies and controllers.
func (w *world) readLogs() {
	for _, pattern := range []string{"*.log", "controller-*/log"} {
		files, err := filepath.Glob(filepath.Join(w.lab.Dir(), pattern))
		w.must(err)
		for _, file := range files {
			w.readLog(file)
		}
	}
}

func (w *world) readLog(file string) {
	f, err := os.Open(file)
	w.must(err)
	defer func() { _ = f.Close() }() // it is only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		text := lines.Text()
		if alarm.MatchString(text) {
			w.violate("%s says: %s", filepath.Base(file), text)
		}
		if strings.Contains(text, `"fenced"`) {
			w.report.fenced++
		}
	}
	w.must(lines.Err())
}
