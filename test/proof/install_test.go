// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// several returns the shared control plane if it has several API servers. Otherwise it starts one with three.
func several(t *testing.T) *controlPlane {
	t.Helper()
	if len(plane.servers) > 1 {
		return plane
	}
	p, err := startControlPlane(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// An installed stands for a program that installs its own hooks. It runs in the test process.
type installed struct {
	plane     *controlPlane
	namespace string
	options   install.Options
	handler   atomic.Pointer[http.ServeMux] // nil while the program is down
}

func newInstalled(t *testing.T, p *controlPlane) *installed {
	t.Helper()
	namespace, err := p.clients[0].CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "install-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	serving, err := ca.Serving("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	i := &installed{plane: p, namespace: namespace.Name}
	i.options = install.Options{
		Config: config, Logger: logr.Discard(), FailOpenFirst: true,
		Configuration: webhook.ConfigurationOptions{Name: i.namespace, Namespace: i.namespace, URL: "https://" + listener.Addr().String(), CABundle: ca.Bundle},
	}
	server := &http.Server{Handler: i, TLSConfig: serving, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(tls.NewListener(listener, serving)) }() // it returns when the server is closed
	t.Cleanup(func() { _ = server.Close() })
	return i
}

// ServeHTTP answers calls unless the program is down.
func (i *installed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if mux := i.handler.Load(); mux != nil {
		mux.ServeHTTP(w, r)
		return
	}
	http.Error(w, "the program is down", http.StatusServiceUnavailable)
}

// installer returns an installer for a hook that denies all ConfigMaps of the namespace with a text. It also serves the
// hook.
func (i *installed) installer(t *testing.T, text string) *install.Installer {
	t.Helper()
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "denies.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: i.namespace}},
	}, func(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error { return webhook.Deny(text) })
	installer, err := install.New(i.options, hook)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, h := range installer.Hooks() {
		mux.Handle(h.Path(), h)
	}
	i.handler.Store(mux)
	return installer
}

// answers creates a ConfigMap as a dry run at each API server, and returns the results.
func (i *installed) answers(t *testing.T, clients []*kubernetes.Clientset) (all []string) {
	t.Helper()
	for _, client := range clients {
		_, err := client.CoreV1().ConfigMaps(i.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch text := fmt.Sprint(err); {
		case err == nil:
			all = append(all, "allowed")
		case strings.Contains(text, "denied the request"):
			all = append(all, "denied"+text[strings.LastIndex(text, ": ")+1:])
		case strings.Contains(text, "failed calling webhook"):
			all = append(all, "failed")
		default:
			all = append(all, text)
		}
	}
	return all
}

func same(answer string, number int) string {
	return strings.TrimSuffix(strings.Repeat(answer+", ", number), ", ")
}

// TestAPIServersInstall checks that each API server enforces a configuration when Wait, Promote or Remove returns,
// although one of them sees it late. During some of the steps, an API server stops, and another one starts in its place.
func TestAPIServersInstall(t *testing.T) {
	p := several(t)
	i := newInstalled(t, p)
	steps := 0
	expect := func(step, want string) {
		t.Helper()
		steps++
		if got := strings.Join(i.answers(t, p.clients), ", "); got != same(want, len(p.clients)) {
			t.Errorf("after %s: %s", step, got)
		}
	}
	run := func(step string, f func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := f(ctx); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	expect("the start", "allowed")
	for round, disturb := range []func(){
		func() {},
		func() { p.end(t, 1) },
		func() { p.add(t) },
		func() { p.end(t, 1); p.add(t) },
	} {
		text := fmt.Sprintf("version %d", round)
		installer := i.installer(t, text)
		disturbed := make(chan struct{})
		go func() { // during Wait
			defer close(disturbed)
			<-time.After(late / 2)
			disturb()
		}()
		run("Apply", installer.Apply)
		run("Wait", installer.Wait)
		<-disturbed
		expect("Wait for "+text, "denied "+text)
		run("Promote", installer.Promote)
		mux := i.handler.Swap(nil)
		expect("Promote of "+text, "failed") // failurePolicy Fail
		i.handler.Store(mux)
		if round%2 == 1 {
			run("Remove", installer.Remove)
			i.handler.Store(nil)
			expect("Remove of "+text, "allowed")
		}
	}
	report(t, row{calls: steps * len(p.clients), note: "each API server after each step"})
}

// TestAPIServersKilled kills an API server during each step of an installation. The program repeats a step that fails, as
// Installer.Start does. When the step returns, each API server that is left must have done it.
func TestAPIServersKilled(t *testing.T) {
	p := several(t)
	i := newInstalled(t, p)
	installer := i.installer(t, "killed")
	repeated := 0
	for _, step := range []struct {
		name  string
		run   func(context.Context) error
		after func()
		want  string
	}{
		{"Apply", installer.Apply, func() {}, ""}, // it does not wait
		{"Wait", installer.Wait, func() {}, "denied killed"},
		{"Promote", installer.Promote, func() { i.handler.Store(nil) }, "failed"},
		{"Remove", installer.Remove, func() {}, "allowed"},
	} {
		if len(p.servers) < 3 {
			p.add(t)
		}
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			p.kill(t, 1)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			err := step.run(ctx)
			if err != nil {
				t.Logf("%s: %v", step.name, err)
				repeated++
			}
			return err == nil, nil
		})
		cancel()
		if <-killed; err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if step.after(); step.want == "" {
			continue
		}
		if got := strings.Join(i.answers(t, p.clients), ", "); got != same(step.want, len(p.clients)) {
			t.Errorf("after %s: %s", step.name, got)
		}
	}
	p.add(t) // the next test may share the control plane
	report(t, row{calls: 4, note: fmt.Sprintf("an API server killed in each of 4 steps, %d attempts failed and were repeated", repeated)})
}

// TestAPIServersNaiveInstall shows that TestAPIServersInstall can fail. Its program asks only one API server whether the
// configuration is enforced.
func TestAPIServersNaiveInstall(t *testing.T) {
	p := several(t)
	i := newInstalled(t, p)
	i.options.FailOpenFirst = false
	config, err := clientcmd.RESTConfigFromKubeConfig(p.servers[0].Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	i.options.Config, i.options.Confirmations = config, 1
	installer := i.installer(t, "naive")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(installer.Apply(ctx), installer.Wait(ctx)); err != nil {
		t.Fatal(err)
	}
	first := strings.Join(i.answers(t, p.clients), ", ")
	if want := same("denied naive", len(p.clients)-1) + ", allowed"; first != want {
		t.Errorf("got %s, want %s", first, want)
	}
	report(t, row{calls: len(p.clients), failed: strings.Count(first, "allowed"), note: "as expected"})
	if err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return strings.Join(i.answers(t, p.clients), ", ") == same("denied naive", len(p.clients)), nil
	}); err != nil {
		t.Errorf("the late API server never enforces the configuration: %v", err)
	}
}
