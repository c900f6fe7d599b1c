// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"bufio"
	"io"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var listening = regexp.MustCompile(`^listening on (127\.0\.0\.1:\d+)\n$`)

// StartPython starts the program with the webhooks in Python and returns its URL. program is the path of PythonProgram,
// relative to the folder of the test. The program ends with the test.
func StartPython(t testing.TB, program string) *url.URL {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", program, "0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Wait(); err == nil {
			t.Error("the webhooks in Python have stopped by themselves")
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	found := listening.FindStringSubmatch(line)
	if err != nil || found == nil {
		t.Fatalf("webhooks in Python: %q, %v\n%s", line, err, stderr.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return &url.URL{Scheme: "http", Host: found[1]}
}
