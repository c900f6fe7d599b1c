// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/apiserverauth"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// TestAPIServersHaveOwnCredentials calls a hook from three API servers with one etcd: two have client certificates of
// different CAs, and one has a token. Then the CAs and tokens are removed one at a time. Only the calls of the API server
// that has them may fail.
func TestAPIServersHaveOwnCredentials(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	listener, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	url := "https://" + listener.Addr().String()
	users, bundles := []apiserverauth.User{{}, {}, {URL: url, Token: "t0ken-of-the-third-server"}}, make([]string, 2)
	for i, name := range []string{"apiserver-1", "apiserver-2"} {
		ca, err := devcert.NewCA()
		if err != nil {
			t.Fatal(err)
		}
		cert, key, err := ca.Client(name)
		if err != nil {
			t.Fatal(err)
		}
		bundles[i] = string(ca.Bundle)
		users[i] = apiserverauth.User{URL: url, CertFile: write(name+".crt", string(cert)), KeyFile: write(name+".key", string(key))}
	}
	accept := func(first, second, third bool) {
		t.Helper()
		cas, token := "", "another-token-of-2026"
		for i, accepted := range []bool{first, second} {
			if accepted {
				cas += bundles[i]
			}
		}
		if third {
			token = users[2].Token
		}
		write("ca.crt", cas)
		write("tokens", token+"\n")
	}
	accept(true, true, true)
	i := &installed{plane: planeOf(t, users, write)}
	i.serve(t, listener, webhook.ClientAuth{
		CAFile: filepath.Join(dir, "ca.crt"), TokenFile: filepath.Join(dir, "tokens"), Names: []string{"apiserver-1", "apiserver-2"}, ReloadInterval: 50 * time.Millisecond,
	})
	for _, step := range []struct {
		first, second, third bool
		want                 string
	}{
		{true, true, true, "denied called, denied called, denied called"},
		{true, false, true, "denied called, failed, denied called"},
		{true, true, false, "denied called, denied called, failed"},
		{false, true, true, "failed, denied called, denied called"},
		{true, true, true, "denied called, denied called, denied called"},
	} {
		accept(step.first, step.second, step.third)
		got := ""
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			got = strings.Join(i.answers(t, i.plane.clients), ", ")
			return got == step.want, nil
		}); err != nil {
			t.Errorf("the API servers answer %q, want %q", got, step.want)
		}
	}
	report(t, row{calls: 15, note: "three API servers with a certificate, a certificate of another CA, and a token"})
}

// planeOf starts an API server for each user, with the same etcd.
func planeOf(t *testing.T, users []apiserverauth.User, write func(name, content string) string) *controlPlane {
	t.Helper()
	p := &controlPlane{}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	for _, user := range users {
		name := "webhooks-" + string(rune('1'+len(p.servers))) + ".kubeconfig"
		path := write(name, "") // Files needs the path
		configuration, kubeconfig, err := apiserverauth.Files(apiserverauth.Options{KubeconfigFile: path, Users: []apiserverauth.User{user}})
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(kubeconfig))
		o := apiserver.Options{Files: map[string][]byte{"admission-control-config-file": configuration}}
		if len(p.servers) > 0 {
			o.Etcd = p.servers[0].Etcd
		}
		if err := p.runWith(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// serve registers a hook that denies all ConfigMaps of a new namespace, and serves it.
func (i *installed) serve(t *testing.T, listener net.Listener, auth webhook.ClientAuth) {
	t.Helper()
	ctx, client := t.Context(), i.plane.clients[0]
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "credentials-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	i.namespace = namespace.Name
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "denies.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: i.namespace}},
	}, func(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error {
		return webhook.Deny("called")
	})
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	serving, err := ca.Serving("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	_, validating, err := webhook.Configurations(webhook.ConfigurationOptions{
		Name: i.namespace, CABundle: ca.Bundle, URL: "https://" + listener.Addr().String(),
	}, hook)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	served, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		ended <- webhook.NewServer(webhook.Options{Listener: listener, TLSConfig: serving, ClientAuth: &auth, ShutdownDelay: -1}, hook).Start(served)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
