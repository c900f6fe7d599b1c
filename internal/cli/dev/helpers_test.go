// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

const shop = `
-- hooks/hooks.go --
package hooks

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"

	"example.com/shop/internal/names"
)

var Team = webhook.Mutating(admissionregistrationv1.MutatingWebhook{
	Name: "team.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	req.Object.Labels = map[string]string{"team": names.Team}
	return nil
})
-- internal/names/names.go --
package names

const Team = "shop"
`

const denyAll = `package hooks

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

var Maps = webhook.Validating(admissionregistrationv1.ValidatingWebhook{
	Name: "maps.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
}, func(context.Context, *webhook.Request[corev1.ConfigMap]) error { return webhook.Deny("no maps here") })
`

// module writes a module with the files of archive, and returns its folder.
func module(t *testing.T, archive string) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), strings.Replace(read(t, filepath.Join(root, "go.mod")), "module github.com/admitkit/admitkit\n",
		"module example.com/shop\n\nrequire github.com/admitkit/admitkit v0.0.0\n\nreplace github.com/admitkit/admitkit => "+root+"\n", 1))
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(root, "go.sum")))
	for _, file := range txtar.Parse([]byte(archive)).Files {
		write(t, filepath.Join(dir, file.Name), string(file.Data))
	}
	return dir
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lines collects the output of dev -o json: one JSON object per line.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	read int
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// An entry is a line of the output of dev -o json: an Admission or an Event.
type entry struct {
	Admission
	Kubeconfig string
	Webhooks   []string
	Registered bool
}

// next returns the next unread entry for which wanted returns true, and waits for it.
func (l *lines) next(t *testing.T, what string, wanted func(entry) bool) entry {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		rest := l.String()[l.read:]
		for {
			line, after, whole := strings.Cut(rest, "\n")
			if !whole {
				break
			}
			l.read += len(line) + 1
			rest = after
			var e entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if wanted(e) {
				return e
			}
		}
		select {
		case <-deadline:
			t.Fatalf("no %s in\n%s", what, l.String())
		case <-again.C:
		}
	}
}

func event(name string) func(entry) bool { return func(e entry) bool { return e.Event == name } }

// running is a run of dev that a test has started.
type running struct {
	out, err *lines
	stop     func() error
}

func begin(t *testing.T, o Options) *running {
	t.Helper()
	r := &running{out: &lines{}, err: &lines{}}
	o.JSON = true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, &screen.Screen{In: strings.NewReader(""), Out: r.out, Err: r.err, Colour: "never", Getenv: os.Getenv}, o)
	}()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = r.stop() }) // the test has checked the error, or has failed
	return r
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 1000, 1000
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	plain, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}}}
}

func configurations(t *testing.T, client kubernetes.Interface) (names []string) {
	t.Helper()
	m, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Items {
		names = append(names, c.Name)
	}
	v, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Items {
		names = append(names, c.Name)
	}
	return names
}
