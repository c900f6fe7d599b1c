// SPDX-License-Identifier: Apache-2.0

package realserver

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

// auditTimeout is how long the engine waits for the audit event of a completed request.
const auditTimeout = 10 * time.Second

// An AuditLog reads audit events from the API server's file. A nil AuditLog has no events.
type AuditLog struct {
	path string

	mu     sync.Mutex
	file   *os.File
	reader *bufio.Reader
	line   []byte                            // the beginning of a line that is not complete yet
	wanted map[string]chan map[string]string // by audit ID
}

// NewAuditLog returns the audit log in a file. The file need not exist yet.
func NewAuditLog(path string) *AuditLog {
	return &AuditLog{path: path, wanted: map[string]chan map[string]string{}}
}

// An auditEvent has the fields of an audit.k8s.io/v1 Event that the engine reads.
type auditEvent struct {
	AuditID     string            `json:"auditID"`
	Stage       string            `json:"stage"`
	Annotations map[string]string `json:"annotations"`
}

// Want returns a channel that receives the annotations of the audit event with this ID. It must be called before the
// request is sent.
func (l *AuditLog) Want(id string) <-chan map[string]string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan map[string]string, 1)
	l.wanted[id] = c
	return c
}

// Forget ends the waiting for the audit event with this ID, which Want has begun.
func (l *AuditLog) Forget(id string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.wanted, id)
}

// Annotations waits for the audit event of a request, and returns its annotations. event is the channel that Want
// returned. The API server writes the event after it has sent the response.
func (l *AuditLog) Annotations(ctx context.Context, event <-chan map[string]string) (map[string]string, error) {
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
		return nil, fmt.Errorf("found no audit event of the request in %s: %w", l.path, err)
	}
	return annotations, nil
}

// read reads the lines that were added since the last call.
func (l *AuditLog) read() error {
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

// take sends the event in l.line to the channel that waits for it, if there is one.
func (l *AuditLog) take() {
	if !bytes.Contains(l.line, []byte(`"stage":"ResponseComplete"`)) && !bytes.Contains(l.line, []byte(`"stage":"Panic"`)) {
		return
	}
	var event auditEvent
	if json.Unmarshal(l.line, &event) != nil {
		return // the line began before the file was opened
	}
	if c := l.wanted[event.AuditID]; c != nil {
		c <- event.Annotations
		delete(l.wanted, event.AuditID)
	}
}

func (l *AuditLog) open() (err error) {
	if l.file, err = os.Open(l.path); err != nil {
		return fmt.Errorf("cannot open the audit log: %w", err)
	}
	l.reader = bufio.NewReaderSize(l.file, 1<<16)
	return nil
}

// follow opens the file again after a log rotation.
func (l *AuditLog) follow() error {
	now, err := os.Stat(l.path)
	if err != nil {
		return nil // the rotation has not created the new file yet
	}
	open, err := l.file.Stat()
	if err != nil || os.SameFile(now, open) {
		return err
	}
	_ = l.file.Close() // it was only read
	l.line = nil
	return l.open()
}

// Close closes the file.
func (l *AuditLog) Close() error {
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
