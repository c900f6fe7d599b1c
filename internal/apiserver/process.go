// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// errPortTaken is in the error of a process that wanted to listen where somebody else does.
var errPortTaken = errors.New("the port is in use")

// A process is an etcd or a kube-apiserver.
type process struct {
	name    string
	cmd     *exec.Cmd
	log     *tail
	done    chan struct{} // closed when it has ended
	err     error         // of its end, once done is closed
	stopped bool          // guarded by mu: we ended it
	mu      sync.Mutex
}

// start starts a binary and remembers it.
func (s *Server) start(name string, flags map[string][]string) (*process, error) {
	p := &process{name: name, log: &tail{}, done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(s.Dir, name), arguments(flags)...)
	p.cmd.Dir = s.data.path
	p.cmd.Env = os.Environ()
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	dieWithParent(p.cmd)
	started := make(chan error)
	go func() {
		// On Linux the child dies with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	s.processes = append(s.processes, p)
	return p, s.data.remember(p.cmd.Process.Pid)
}

// ready waits until a GET succeeds.
func (p *process) ready(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s is not ready after %s", p.name, patience))
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if get(ctx, client, url) {
			return p.crashed() // then somebody else has the port, and answered
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w%s", context.Cause(ctx), p.log.lastWords())
		case <-p.done:
			return p.crashed()
		case <-again.C:
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }() // only read
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

// crashed says why the process has ended by itself; nil if it has not.
func (p *process) crashed() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	words := p.log.lastWords()
	switch {
	case p.stopped:
		return nil
	case strings.Contains(words, "address already in use"):
		return fmt.Errorf("%s: %w%s", p.name, errPortTaken, words)
	case p.err == nil:
		return fmt.Errorf("%s ended%s", p.name, words)
	}
	return fmt.Errorf("%s ended: %w%s", p.name, p.err, words)
}

// end ends the process: gently, so that its logs are complete, but not for long.
func (p *process) end() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	interrupt(p.cmd)
	wait := time.NewTimer(10 * time.Second)
	defer wait.Stop()
	select {
	case <-p.done:
		return
	case <-wait.C:
	}
	_ = p.cmd.Process.Kill() // it fails if the process has ended
	<-p.done
}
