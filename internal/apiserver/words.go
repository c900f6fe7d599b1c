// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"strings"
	"sync"
)

// A tail keeps the last part of what a process says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const kept = 64 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*kept {
		t.text = append(t.text[:0], t.text[len(t.text)-kept:]...)
	}
	return len(p), nil
}

// lastWords returns the lines that tell why it ended, each after a line break.
func (t *tail) lastWords() string {
	const lines = 4
	t.mu.Lock()
	defer t.mu.Unlock()
	var telling, all []string
	for line := range strings.Lines(string(t.text)) {
		text, failed := message(strings.TrimSpace(line))
		if text == "" {
			continue
		}
		all = append(all, text)
		if failed {
			telling = append(telling, text)
		}
	}
	if len(telling) == 0 {
		telling = all
	}
	if len(telling) == 0 {
		return ""
	}
	return "\n" + strings.Join(telling[max(0, len(telling)-lines):], "\n")
}

// message returns what a line of a log says without its head, and whether that is a failure.
func message(line string) (text string, failed bool) {
	const long = 1000 // the reason comes last, after paths
	switch {
	case strings.HasPrefix(line, "{"): // etcd
		var entry struct{ Level, Msg, Error string }
		if json.Unmarshal([]byte(line), &entry) == nil {
			text, failed = strings.Trim(entry.Msg+": "+entry.Error, ": "), entry.Level == "fatal" || entry.Level == "panic" || entry.Level == "error"
		}
	case len(line) > 5 && strings.ContainsAny(line[:1], "IWEF") && line[1] >= '0' && line[1] <= '9': // kube-apiserver
		_, text, _ = strings.Cut(line, "] ")
		failed = line[0] == 'E' || line[0] == 'F'
	default:
		text, failed = line, strings.HasPrefix(line, "Error: ") || strings.HasPrefix(line, "panic: ")
	}
	if len(text) > long {
		text = text[:long] + " ..."
	}
	return text, failed
}
