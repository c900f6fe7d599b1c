// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/examples/testcluster"
)

// TestPageTriesAHook follows the section "Try them" of docs/gallery.md, with another port. The output of its commands
// must be the output on the page.
func TestPageTriesAHook(t *testing.T) {
	page, err := os.ReadFile("../../docs/gallery.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Try them\n")
	section, _, _ = strings.Cut(section, "\n## ")
	try := &trial{cluster: startCluster(t)}
	if try.listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	section = strings.ReplaceAll(section, "127.0.0.1:9443", try.listener.Addr().String())
	lines := strings.Split(section, "\n")
	for i, line := range lines {
		if args, ok := strings.CutPrefix(line, "go run ./examples/gallery "); ok {
			try.run(t, strings.Fields(args))
		} else if strings.HasPrefix(line, "Ctrl-C ") {
			try.stop(t)
		} else if args, ok := strings.CutPrefix(line, "kubectl "); ok {
			try.kubectl(t, args)
		} else if args, ok := strings.CutPrefix(line, "$ kubectl "); ok {
			if got, want := try.kubectl(t, args), lines[i+1]; got != want {
				t.Errorf("%s prints\n%s\nbut the page shows\n%s", line, got, want)
			}
		}
	}
	if got, want := try.kubectl(t, "run last --image=shop:v1"), "pod/last created"; got != want {
		t.Errorf("after the last command: got %s, want %s", got, want)
	}
	if try.commands != 2 {
		t.Errorf("the page runs the program %d times, want 2", try.commands)
	}
}

// A trial runs the commands of the page.
type trial struct {
	cluster  *testcluster.Cluster
	listener net.Listener
	commands int                // runs of the program
	cancel   context.CancelFunc // stops the program
	ended    chan error
}

// run runs the program with these arguments. It returns when the program has ended, or when the API server enforces its
// hooks.
func (r *trial) run(t *testing.T, args []string) {
	t.Helper()
	r.commands++
	p := newProgram()
	p.Config = r.cluster.Config()
	if args[len(args)-1] == "--uninstall" {
		if err := p.Run(t.Context(), args, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
		return
	}
	p.Listener = r.listener
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(t.Context())
	r.ended = make(chan error, 1)
	log, stderr := io.Pipe()
	go func() {
		r.ended <- p.Run(ctx, append(args, "--shutdown-delay=0"), io.Discard, stderr)
		_ = stderr.Close() // never fails
	}()
	scanner := bufio.NewScanner(log)
	for scanner.Scan() {
		if strings.Contains(scanner.Text(), "the webhooks are installed and enforced") {
			go func() { _, _ = io.Copy(io.Discard, log) }() // until the program ends
			return
		}
	}
	t.Fatalf("the program ended: %v", <-r.ended)
}

// stop stops the program as Ctrl-C does.
func (r *trial) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

// kubectl returns the first line of the output of a kubectl command. An error is part of the output.
func (r *trial) kubectl(t *testing.T, args string) string {
	t.Helper()
	out, _ := r.cluster.Kubectl(t.Context(), "", strings.Fields(strings.ReplaceAll(args, "'", ""))...)
	line, _, _ := strings.Cut(out, "\n")
	return line
}
