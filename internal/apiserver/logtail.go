// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"strings"
	"sync"
)

// A logTail is a writer that keeps the end of a process's output.
type logTail struct {
	mu   sync.Mutex
	text []byte
}

func (t *logTail) Write(p []byte) (int, error) {
	const kept = 64 << 10 // bytes
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*kept {
		t.text = append(t.text[:0], t.text[len(t.text)-kept:]...)
	}
	return len(p), nil
}

// errors returns the last lines that report a failure, or the last lines of any kind if none does. Each line follows
// a line break.
func (t *logTail) errors() string {
	const lines = 4
	t.mu.Lock()
	defer t.mu.Unlock()
	var failures, all []string
	for line := range strings.Lines(string(t.text)) {
		text, failed := message(strings.TrimSpace(line))
		if text == "" {
			continue
		}
		all = append(all, text)
		if failed {
			failures = append(failures, text)
		}
	}
	if len(failures) == 0 {
		failures = all
	}
	if len(failures) == 0 {
		return ""
	}
	return "\n" + strings.Join(failures[max(0, len(failures)-lines):], "\n")
}

// message returns the text of a log line without its header, and whether the line reports a failure.
func message(line string) (text string, failed bool) {
	const maxLength = 1000 // bytes; long paths may come before the reason
	switch {
	case strings.HasPrefix(line, "{"): // a line of etcd
		var entry struct{ Level, Msg, Error string }
		if json.Unmarshal([]byte(line), &entry) == nil {
			text, failed = strings.Trim(entry.Msg+": "+entry.Error, ": "), entry.Level == "fatal" || entry.Level == "panic" || entry.Level == "error"
		}
	case len(line) > 5 && strings.ContainsAny(line[:1], "IWEF") && line[1] >= '0' && line[1] <= '9': // a line of kube-apiserver
		_, text, _ = strings.Cut(line, "] ")
		failed = line[0] == 'E' || line[0] == 'F'
	default:
		text, failed = line, strings.HasPrefix(line, "Error: ") || strings.HasPrefix(line, "panic: ")
	}
	if len(text) > maxLength {
		text = text[:maxLength] + " ..."
	}
	return text, failed
}
