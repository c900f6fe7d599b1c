// SPDX-License-Identifier: Apache-2.0

package livetest

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/admitkit/admitkit/pkg/program"
)

// A Replica is a running program.
type Replica struct {
	// URL is the address of its hooks on loopback.
	URL  string
	stop func()
}

// Start runs the program with these arguments until the end of the test or a call of Stop. It adds --url if
// it is missing. The test fails if the program ends with an error.
func Start(t *testing.T, p program.Program, args ...string) *Replica {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Listener = listener
	r := &Replica{URL: "https://" + listener.Addr().String()}
	// The last of several flags with the same name applies.
	args = append([]string{"--url=" + r.URL}, append(args, "--ops-addr=", "--shutdown-delay=0")...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var log bytes.Buffer // written by one logger, and read at the end
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, args, io.Discard, &log) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s ended with %v", p.Name, err)
		}
		if t.Failed() {
			t.Logf("the log of %s at %s:\n%s", p.Name, r.URL, log.String())
		}
	})
	t.Cleanup(r.stop)
	return r
}

// Stop ends the program as SIGTERM does.
func (r *Replica) Stop() { r.stop() }
