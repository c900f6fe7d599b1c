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

// errPortTaken is the cause if a process has ended because another process uses its port.
var errPortTaken = errors.New("the port is in use")

// A process is a running etcd, kube-apiserver or kube-controller-manager.
type process struct {
	name    string
	cmd     *exec.Cmd
	log     *logTail
	done    chan struct{} // closed when the process has ended
	err     error         // result of Wait; set before done is closed
	mu      sync.Mutex    // guards stopped and replaced
	stopped bool          // whether end, Kill or Restart was called
	// replaced is set if Restart starts another process in its place.
	replaced bool
	// ready waits until p, this process or its replacement, is ready. It is nil if the server does not wait for the process.
	ready func(ctx context.Context, p *process) error
}

// start starts a binary and records its process id.
func (s *Server) start(name string, flags map[string][]string) (*process, error) {
	return s.startWith(name, arguments(flags))
}

func (s *Server) startWith(name string, arguments []string) (*process, error) {
	p := &process{name: name, log: &logTail{}, done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(s.Dir, name), arguments...)
	p.cmd.Dir = s.data.path
	p.cmd.Env = os.Environ()
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	dieWithParent(p.cmd)
	started := make(chan error)
	go func() {
		// Pdeathsig: on Linux the child dies with the thread that started it, so the thread must stay.
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
	return p, s.data.recordPID(p.cmd.Process.Pid)
}

// waitReady waits until a GET of the URL returns 200 OK.
func (p *process) waitReady(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("%s is not ready after %s", p.name, startTimeout))
	defer cancel()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		if succeeds(ctx, client, url) {
			return p.crash() // p has crashed, and another process on its port answered
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w%s", context.Cause(ctx), p.log.errors())
		case <-p.done:
			return p.crash()
		case <-retry.C:
		}
	}
}

// succeeds reports whether a GET of the URL returns 200 OK.
func succeeds(ctx context.Context, client *http.Client, url string) bool {
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
	defer func() { _ = response.Body.Close() }() // nothing was written
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

// crash returns why the process has ended by itself. It returns nil for a process that runs or was stopped.
func (p *process) crash() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	logged := p.log.errors()
	switch {
	case p.stopped:
		return nil
	case strings.Contains(logged, "address already in use"):
		return fmt.Errorf("%s: %w%s", p.name, errPortTaken, logged)
	case p.err == nil:
		return fmt.Errorf("%s ended%s", p.name, logged)
	}
	return fmt.Errorf("%s ended: %w%s", p.name, p.err, logged)
}

// Kill kills all processes of the server at once, so they cannot finish requests. Stop must still be called.
func (s *Server) Kill() {
	for _, p := range s.processes {
		p.mu.Lock()
		p.stopped = true
		p.mu.Unlock()
		_ = p.cmd.Process.Kill() // fails if the process has ended
	}
	for _, p := range s.processes {
		<-p.done
	}
}

// Restart kills all processes at once, as if the machine had lost power, and starts them again with the data of etcd. It
// is not safe for concurrent use with any other method.
func (s *Server) Restart(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			s.signalDone()
		}
	}()
	old := s.processes
	s.processes = nil
	for _, p := range old {
		p.mu.Lock()
		p.stopped, p.replaced = true, true
		p.mu.Unlock()
		_ = p.cmd.Process.Kill() // fails if the process has ended
	}
	for _, p := range old {
		<-p.done
	}
	for _, p := range old {
		next, err := s.startWith(p.name, p.cmd.Args[1:])
		if err != nil {
			return err
		}
		if next.ready = p.ready; next.ready == nil {
			continue
		}
		if err := next.ready(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// end asks the process to end, so that it can complete its logs, and kills it after 10 seconds.
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
	_ = p.cmd.Process.Kill() // fails if the process has ended
	<-p.done
}
