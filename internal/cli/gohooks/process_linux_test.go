// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

const calling = `
-- hooks/hooks.go --
package hooks

import (
	"net"
	"os"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var Pull *webhook.Hook

func init() {
	conn, err := net.Dial("tcp", os.Getenv("GOHOOKS_TEST_DIAL"))
	if err == nil {
		_, _ = conn.Read(make([]byte, 1)) // blocks, because the other side never writes
	}
}
`

// TestHangingProcessEndsWithItsParent kills the parent of a process that does not read its standard input. The process
// must end as well.
func TestHangingProcessEndsWithItsParent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), parent+"="+module(t, calling), dial+"="+listener.Addr().String(), "TMPDIR="+t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("it is there still: %v", err)
	}
}
