// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// auditTimeout is how long the event of an answered request is waited for.
const auditTimeout = 10 * time.Second

// An auditLog reads audit events from the API server's file. A nil auditLog has no events.
type auditLog struct {
	path string

	mu     sync.Mutex
	file   *os.File
	reader *bufio.Reader
	line   []byte // the beginning of one that is not there whole
	wanted map[string]chan map[string]string
}

func newAuditLog(path string) *auditLog {
	return &auditLog{path: path, wanted: map[string]chan map[string]string{}}
}

// An auditEvent has the fields of an audit.k8s.io/v1 Event that the engine reads.
type auditEvent struct {
	AuditID     string            `json:"auditID"`
	Stage       string            `json:"stage"`
	Annotations map[string]string `json:"annotations"`
}

// want is called before a request is sent; the annotations of its event come through the channel.
func (l *auditLog) want(id string) <-chan map[string]string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan map[string]string, 1)
	l.wanted[id] = c
	return c
}

func (l *auditLog) forget(id string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.wanted, id)
}

// annotations waits for the event of a request: the API server writes it when the answer is out.
func (l *auditLog) annotations(ctx context.Context, event <-chan map[string]string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	var annotations map[string]string
	err := wait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(context.Context) (bool, error) {
		if err := l.read(); err != nil {
			return false, err
		}
		select {
		case annotations = <-event:
			return true, nil
		default:
			return false, nil
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s does not tell of the request: %w", l.path, err)
	}
	return annotations, nil
}

// read takes in what was written since the last time.
func (l *auditLog) read() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	for {
		part, err := l.reader.ReadSlice('\n')
		l.line = append(l.line, part...)
		switch {
		case err == nil:
			l.take()
			l.line = l.line[:0]
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return l.follow()
		default:
			return err
		}
	}
}

// take hands over the event of the line if somebody waits for it.
func (l *auditLog) take() {
	if !bytes.Contains(l.line, []byte(`"stage":"ResponseComplete"`)) && !bytes.Contains(l.line, []byte(`"stage":"Panic"`)) {
		return
	}
	var event auditEvent
	if json.Unmarshal(l.line, &event) != nil {
		return // half a line, from before the file was opened
	}
	if c := l.wanted[event.AuditID]; c != nil {
		c <- event.Annotations
		delete(l.wanted, event.AuditID)
	}
}

func (l *auditLog) open() (err error) {
	if l.file, err = os.Open(l.path); err != nil {
		return fmt.Errorf("the audit log: %w", err)
	}
	l.reader = bufio.NewReaderSize(l.file, 1<<16)
	return nil
}

// follow opens the file anew when it has been rotated away.
func (l *auditLog) follow() error {
	now, err := os.Stat(l.path)
	if err != nil {
		return nil // between two files
	}
	open, err := l.file.Stat()
	if err != nil || os.SameFile(now, open) {
		return err
	}
	_ = l.file.Close() // it was only read
	l.line = nil
	return l.open()
}

func (l *auditLog) close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
