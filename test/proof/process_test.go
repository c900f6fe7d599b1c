// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A process is a running replica.
type process struct {
	name   string
	hello  Hello
	cmd    *exec.Cmd
	stdin  io.Closer
	log    *tail
	exited chan struct{} // closed when the process has exited and err is set
	err    error
	doomed atomic.Bool // the proof kills the process, so its exit is not an error
}

// startProcess starts a replica and waits until it listens.
func startProcess(t *testing.T, s Settings) *process {
	t.Helper()
	p, err := newProcess(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t) })
	return p
}

func newProcess(s Settings) (*process, error) {
	p := &process{name: s.Name, cmd: exec.Command(binary, asReplica), log: &tail{}, exited: make(chan struct{})}
	p.cmd.Stderr = p.log
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(stdin).Encode(s); err != nil {
		return nil, p.failed(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &p.hello)
	}
	if err != nil {
		return nil, p.failed(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (p *process) failed(err error) error {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	return fmt.Errorf("replica %s did not start: %w\n%s", p.name, err, p.log)
}

// stop sends SIGTERM as a kubelet does, and waits until the process has exited.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("replica %s: %v\n%s", p.name, err, p.log)
	}
	p.await(t)
	if p.err != nil {
		t.Errorf("replica %s did not stop cleanly: %v\n%s", p.name, p.err, p.log)
	}
}

// kill sends SIGKILL and waits until the process has exited.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.doomed.Store(true)
	_ = p.cmd.Process.Kill()
	p.await(t)
}

func (p *process) await(t *testing.T) {
	t.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	select {
	case <-p.exited:
	case <-timeout.C:
		_ = p.cmd.Process.Kill()
		t.Fatalf("replica %s did not stop in a minute\n%s", p.name, p.log)
	}
}

// end kills the replica at the end of a proof. It reports a replica that died by itself, and logs the
// output of the replica if the proof failed.
func (p *process) end(t *testing.T) {
	select {
	case <-p.exited:
		if !p.doomed.Load() && p.err != nil {
			t.Errorf("replica %s died: %v", p.name, p.err)
		}
	default:
		p.kill(t)
	}
	_ = p.stdin.Close()
	if t.Failed() {
		t.Logf("the log of replica %s ends with:\n%s", p.name, p.log)
	}
}

var statsClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// stats requests the state of the replica.
func (p *process) stats(query string) (Stats, error) {
	var s Stats
	resp, err := statsClient.Get("http://" + p.hello.Stats + StatsPath + query)
	if err != nil {
		return s, err
	}
	defer func() { _ = resp.Body.Close() }()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// memory returns a memory field of /proc/PID/status in bytes. VmHWM is the most memory that the process ever
// used. RssAnon is its current memory without the pages of files.
func (p *process) memory(t *testing.T, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("cannot measure memory: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(line, ":"); name == field {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s in /proc/%d/status", field, p.cmd.Process.Pid)
	return 0
}

// A tail is a writer that keeps the last 16 KiB.
type tail struct {
	mu    sync.Mutex
	text  []byte
	lines int // lines written so far
}

const tailBytes = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.lines += bytes.Count(p, []byte("\n"))
	if over := len(t.text) - tailBytes; over > 0 {
		if line := bytes.IndexByte(t.text[over:], '\n'); line >= 0 {
			over += line + 1
		}
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cmp.Or(string(t.text), "(empty)")
}
