// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// The tests start the test binary again, so that they can kill it.
const (
	parent = "GOHOOKS_TEST_PARENT"
	dial   = "GOHOOKS_TEST_DIAL" // the address that a hanging package connects to
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(parent); dir != "" {
		fmt.Println(beParent(dir))
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test kills this process
		return
	}
	os.Exit(m.Run())
}

func beParent(dir string) string {
	if os.Getenv(dial) != "" {
		_, err := Build(context.Background(), Options{Dir: dir, Package: "./hooks"}) // it hangs
		return fmt.Sprint(err)
	}
	p, err := Build(context.Background(), Options{Dir: dir, Package: "./internal/hooks"})
	if err != nil {
		return err.Error()
	}
	process, err := p.Start(context.Background(), StartOptions{})
	if err != nil {
		return err.Error()
	}
	return process.URL
}

func TestProcessEndsWithItsParent(t *testing.T) {
	temporary := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), parent+"="+module(t, shop), "TMPDIR="+temporary)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, _ := bufio.NewReader(stdout).ReadString('\n')
	conn, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSpace(url), "https://"))
	if err != nil {
		t.Fatalf("%q: %v", url, err)
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
		t.Errorf("the hooks are served still: %v", err)
	}
}

const moody = `
-- hooks/hooks.go --
package hooks

import (
	"context"
	"fmt"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var Moody = webhook.Validating(admissionregistrationv1.ValidatingWebhook{
	Name: "moody.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	switch req.Name {
	case "print":
		fmt.Println(os.Getpid(), "prints")
	case "exit":
		fmt.Fprintln(os.Stderr, "that was too much")
		os.Exit(3)
	}
	return nil
})

var Unsuitable = webhook.Validating(admissionregistrationv1.ValidatingWebhook{
	Name: "unsuitable.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })
`

func review(name string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"version":"v1","kind":"Pod"},
		"resource":{"version":"v1","resource":"pods"},"name":"` + name + `","operation":"CREATE","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"}}}}`
}

func TestProcesses(t *testing.T) {
	p, err := Build(t.Context(), Options{Dir: module(t, moody), Package: "./hooks"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)

	t.Run("replicas have addresses and logs of their own", func(t *testing.T) {
		var logs [2]locked
		var replicas [2]*Process
		for i := range replicas {
			if replicas[i], err = p.Start(t.Context(), StartOptions{Log: &logs[i]}); err != nil {
				t.Fatal(err)
			}
			defer replicas[i].Close()
		}
		if replicas[0].URL == replicas[1].URL || !bytes.Equal(replicas[0].CA, replicas[1].CA) {
			t.Errorf("%s and %s", replicas[0].URL, replicas[1].URL)
		}
		post(t, replicas[1], "/validate/moody.example.com", review("print"))
		replicas[0].Close()
		replicas[1].Close()
		if logs[0].String() != "" || !strings.HasSuffix(logs[1].String(), " prints\n") {
			t.Errorf("logs %q, %q", &logs[0], &logs[1])
		}
	})

	t.Run("the error of a crash has the last output", func(t *testing.T) {
		process, err := p.Start(t.Context(), StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer process.Close()
		if err := process.Err(); err != nil {
			t.Errorf("before the end: %v", err)
		}
		if response, err := client(process).Post(process.URL+"/validate/moody.example.com", "application/json", strings.NewReader(review("exit"))); err == nil {
			_ = response.Body.Close()
			t.Fatalf("an answer: %s", response.Status)
		}
		<-process.Done()
		const want = "the program that runs the hooks of example.com/shop/hooks has ended: exit status 3\nthat was too much"
		if err := process.Err(); err == nil || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	})

	t.Run("the end of the context is that of the process", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		process, err := p.Start(ctx, StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		<-process.Done()
		process.Close()
		if err := process.Err(); err != nil {
			t.Error(err)
		}
	})

	t.Run("errors in the configuration", func(t *testing.T) {
		_, _, err := p.Describe(t.Context(), webhook.ConfigurationOptions{Name: "Not/A/Name", URL: "http://hooks.example.com"})
		if err == nil || !strings.Contains(err.Error(), `ConfigurationOptions.Name: Invalid value: "Not/A/Name"`) || !strings.Contains(err.Error(), "must begin with https://") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a program that is gone", func(t *testing.T) {
		p.Close()
		if _, err := p.Start(t.Context(), StartOptions{}); err == nil || !strings.HasPrefix(err.Error(), "cannot run the hooks of example.com/shop/hooks") {
			t.Errorf("got %v", err)
		}
	})
}

// TestPackageOfAnotherModule checks that Build works for a package of another module. The folder of such a package may
// be in the read-only module cache.
func TestPackageOfAnotherModule(t *testing.T) {
	dir := module(t, shop+"-- other/go.mod --\n"+`module example.com/other

go 1.26.0
-- other/policy/policy.go --
package policy

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func Hooks() []*webhook.Hook {
	return []*webhook.Hook{webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "other.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(context.Context, *webhook.Request[corev1.Pod]) error { return nil })}
}
`)
	gomod := filepath.Join(dir, "go.mod")
	write(t, gomod, read(t, gomod)+"\nrequire example.com/other v0.0.0\n\nreplace example.com/other => ./other\n")
	other := filepath.Join(dir, "other", "go.mod") // has the requirements of the main module's go.mod
	write(t, other, strings.Replace(strings.Replace(read(t, gomod), "module example.com/shop", "module example.com/other", 1),
		"\nrequire example.com/other v0.0.0\n\nreplace example.com/other => ./other\n", "", 1))
	p, err := Build(t.Context(), Options{Dir: dir, Package: "example.com/other/policy"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if len(p.Hooks) != 1 || p.Hooks[0].Name != "other.example.com" || p.Hooks[0].Symbol != "Hooks()[0]" {
		t.Errorf("got %v", p.Hooks)
	}
}

// locked is a buffer that is safe for concurrent use.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const hanging = `
-- hooks/hooks.go --
package hooks

import (
	"os"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var Pull *webhook.Hook

func init() {
	r, _, err := os.Pipe()
	println("it hangs", err)
	_, _ = r.Read(make([]byte, 1)) // blocks, because the other side never writes
}
`

// TestPackageThatHangs ends the context of a process that does not read its standard input. The process must end at
// once.
func TestPackageThatHangs(t *testing.T) {
	dir, temporary := module(t, hanging), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &lines{each: func(string) { cancel() }}
	if _, err := Build(ctx, Options{Dir: dir, Package: "./hooks", Log: log}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := tree(t, temporary); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
}

func TestLines(t *testing.T) {
	var got []string
	l := &lines{each: func(line string) { got = append(got, line) }}
	for _, part := range []string{"a", "b\nc\r\n", "\n", strings.Repeat("x", longest+10) + "\nlast"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	l.flush()
	l.flush()
	if want := []string{"ab", "c", "", strings.Repeat("x", longest), "last"}; !slices.Equal(got, want) {
		t.Errorf("got %.200q", got)
	}
}
