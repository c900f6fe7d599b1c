// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A real API server calls a hook that reads Namespaces from a cache. The program has only the permissions that
// --print-rbac prints.
func TestHookThatReadsRunsWithItsPrintedPermissions(t *testing.T) {
	server := apiservertest.Start(t, nil)
	admin, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	p := Program{Name: "teams", Hooks: teamsHook}
	createNamespace(t, admin, "teams", nil)
	createNamespace(t, admin, "owned", map[string]string{"team": "a"})
	createNamespace(t, admin, "orphaned", nil)
	p.Config = account(t, admin, server.Config, "teams")
	applyPermissions(t, admin, p)

	p.Listener = listen(t)
	logs := startProgram(t, p, "--self-managed", "--url=https://"+p.Listener.Addr().String())

	eventually(t, "the hook denies a ConfigMap", func() bool {
		err := createConfigMap(t, admin, "orphaned")
		return err != nil && strings.Contains(err.Error(), "the namespace orphaned has no team")
	})
	if err := createConfigMap(t, admin, "owned"); err != nil {
		t.Error(err)
	}
	if text := logs.String(); strings.Contains(text, "forbidden") {
		t.Errorf("the printed permissions are not enough:\n%s", text)
	}
}

// This test removes the permission to list Namespaces, so the cache never syncs. The program must not become ready, and
// the hook must not be enforced.
func TestProgramIsNotReadyBeforeItsCaches(t *testing.T) {
	server := apiservertest.Start(t, nil)
	admin, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	createNamespace(t, admin, "teams", nil)
	createNamespace(t, admin, "orphaned", nil)
	p := Program{Name: "teams", Config: account(t, admin, server.Config, "teams"), Hooks: func(ctx context.Context, deps *Deps) ([]*webhook.Hook, error) {
		hooks, err := teamsHook(ctx, deps)
		clear(deps.rules)
		return hooks, err
	}}
	applyPermissions(t, admin, p)
	p.Listener = listen(t)
	logs := startProgram(t, p, "--self-managed", "--url=https://"+p.Listener.Addr().String())
	eventually(t, "the log names the missing cache", func() bool {
		return strings.Contains(logs.String(), "not ready yet: caches of the hooks")
	})
	if err := createConfigMap(t, admin, "orphaned"); err != nil {
		t.Errorf("the hook is enforced before its cache has synced: %v", err)
	}
}

func createNamespace(t *testing.T, admin kubernetes.Interface, name string, labels map[string]string) {
	t.Helper()
	if _, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func createConfigMap(t *testing.T, admin kubernetes.Interface, namespace string) error {
	t.Helper()
	_, err := admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// account creates a ServiceAccount and returns the client configuration of a Pod that runs as it.
func account(t *testing.T, admin kubernetes.Interface, config *rest.Config, name string) *rest.Config {
	t.Helper()
	accounts := admin.CoreV1().ServiceAccounts(name)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := rest.AnonymousClientConfig(config)
	out.BearerToken = token.Status.Token
	return out
}

// applyPermissions creates the objects that --print-rbac prints.
func applyPermissions(t *testing.T, admin kubernetes.Interface, p Program) {
	t.Helper()
	var out bytes.Buffer
	if err := p.Run(t.Context(), []string{"--print-rbac", "--self-managed", "--url=https://127.0.0.1"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	create := metav1.CreateOptions{}
	for document := range strings.SplitSeq(out.String(), "---\n") {
		var err error
		switch decode[metav1.TypeMeta](t, document).Kind {
		case "ClusterRole":
			_, err = admin.RbacV1().ClusterRoles().Create(t.Context(), decode[rbacv1.ClusterRole](t, document), create)
		case "ClusterRoleBinding":
			_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), decode[rbacv1.ClusterRoleBinding](t, document), create)
		case "Secret":
			_, err = admin.CoreV1().Secrets("teams").Create(t.Context(), decode[corev1.Secret](t, document), create)
		case "Role":
			_, err = admin.RbacV1().Roles("teams").Create(t.Context(), decode[rbacv1.Role](t, document), create)
		case "RoleBinding":
			_, err = admin.RbacV1().RoleBindings("teams").Create(t.Context(), decode[rbacv1.RoleBinding](t, document), create)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func decode[T any](t *testing.T, document string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.Unmarshal([]byte(document), out); err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	return out
}

// A logBuffer collects log lines of a running program.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startProgram runs the program until the test ends, and returns its log.
func startProgram(t *testing.T, p Program, args ...string) *logBuffer {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	logs, ended := &logBuffer{}, make(chan error, 1)
	go func() { ended <- p.Run(ctx, append(args, "--ops-addr=", "--shutdown-delay=0"), io.Discard, logs) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the log of the program:\n%s", logs)
		}
	})
	return logs
}

// A controller-runtime cache must sync with only the permissions that the hooks declare. Once the program is ready, the
// hooks must be able to read from the cache.
func TestCacheOfControllerRuntime(t *testing.T) {
	server := apiservertest.Start(t, nil)
	admin, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	createNamespace(t, admin, "teams", nil)
	read := make(chan error, 1)
	p := Program{Name: "teams", Config: account(t, admin, server.Config, "teams"), Hooks: func(ctx context.Context, deps *Deps) ([]*webhook.Hook, error) {
		reader, err := cache.New(deps.Config, cache.Options{ReaderFailOnMissingInformer: true})
		if err != nil {
			return nil, err
		}
		deps.RunCache(reader, func(ctx context.Context) error {
			_, err := reader.GetInformer(ctx, &corev1.Namespace{})
			return err
		})
		deps.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}})
		deps.Run(runnableFunc(func(ctx context.Context) error {
			err := deps.waitReady(ctx)
			if err == nil { // fails for an object that RunCache has not requested
				err = reader.Get(ctx, client.ObjectKey{Name: "teams"}, &corev1.Namespace{})
			}
			read <- err
			return nil
		}))
		return newProgram().Hooks(ctx, deps)
	}}
	applyPermissions(t, admin, p)
	p.Listener = listen(t)
	startProgram(t, p, "--self-managed", "--url=https://"+p.Listener.Addr().String())
	if err := <-read; err != nil {
		t.Error(err)
	}
}
