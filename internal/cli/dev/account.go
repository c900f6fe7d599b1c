// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"os"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/install"
)

// accountName is the name of the ServiceAccount and the roles of hooks that read a local API server.
const accountName = "admitkit-dev-hooks"

// access returns the client configuration for hooks that read the cluster. On a local API server, the hooks use a
// ServiceAccount with just the permissions that they declare, as in a Pod, so that a missing permission shows at once.
// In an existing cluster, they use the credentials of the user.
func (d *session) access(ctx context.Context, rules map[string][]rbacv1.PolicyRule) (*rest.Config, error) {
	if d.o.Cluster {
		return d.config, nil
	}
	select {
	case <-d.started:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.startErr != nil {
		return nil, d.startErr
	}
	config, err := accountOf(ctx, d.target.(*localServer).server.Config, d.o.Namespace, rules)
	if err != nil {
		return nil, problem.New("cannot create the ServiceAccount of the hooks: %w", err)
	}
	return config, nil
}

// accountOf creates the ServiceAccount with the rules, or replaces its rules, and returns its client configuration. It
// also creates the namespace of the hooks, unless that is empty.
func accountOf(ctx context.Context, admin *rest.Config, namespace string, rules map[string][]rbacv1.PolicyRule) (*rest.Config, error) {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	if namespace != "" {
		if err := ensureNamespace(ctx, clients, namespace); err != nil {
			return nil, err
		}
	}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: accountName}
	accounts := clients.CoreV1().ServiceAccounts(subject.Namespace)
	_, err = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: accountName}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	if err := grant(ctx, admin, subject, rules); err != nil {
		return nil, err
	}
	token, err := accounts.CreateToken(ctx, accountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	return config, nil
}

// ensureNamespace creates the namespace unless it exists.
func ensureNamespace(ctx context.Context, clients kubernetes.Interface, name string) error {
	_, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// grant gives the subject exactly the permissions in rules, by namespace. The key "" means the whole cluster. grant
// creates missing namespaces.
func grant(ctx context.Context, admin *rest.Config, subject rbacv1.Subject, rules map[string][]rbacv1.PolicyRule) error {
	typed, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	for namespace := range rules {
		if namespace == "" {
			continue // the whole cluster
		}
		if err := ensureNamespace(ctx, typed, namespace); err != nil {
			return err
		}
	}
	clients, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	granted := map[string]bool{}
	for _, object := range install.PermissionsFor(accountName, subject, rules).Objects() {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{Object: fields}
		granted[u.GetKind()+" "+u.GetNamespace()] = true
		objects := clients.Resource(rbacv1.SchemeGroupVersion.WithResource(strings.ToLower(u.GetKind()) + "s")).Namespace(u.GetNamespace())
		_, err = objects.Create(ctx, u, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = objects.Update(ctx, u, metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
	}
	return revoke(ctx, clients, granted)
}

// revoke deletes the roles of an earlier version of the hooks. It keeps those in granted, whose keys have the form
// "KIND NAMESPACE".
func revoke(ctx context.Context, clients dynamic.Interface, granted map[string]bool) error {
	for _, name := range []string{"clusterrolebindings", "rolebindings", "clusterroles", "roles"} {
		objects := clients.Resource(rbacv1.SchemeGroupVersion.WithResource(name))
		found, err := objects.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + accountName})
		if err != nil {
			return err
		}
		for _, o := range found.Items {
			if granted[o.GetKind()+" "+o.GetNamespace()] {
				continue
			}
			err := objects.Namespace(o.GetNamespace()).Delete(ctx, accountName, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// writeKubeconfig writes a client configuration to a temporary file. The caller removes it.
func writeKubeconfig(config *rest.Config) (file string, err error) {
	if err := rest.LoadTLSFiles(config); err != nil {
		return "", err
	}
	const name = "hooks"
	k := clientcmdapi.NewConfig()
	k.CurrentContext = name
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	k.Clusters[name] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure,
	}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken, TokenFile: config.BearerTokenFile,
		Username: config.Username, Password: config.Password, Exec: config.ExecProvider, AuthProvider: config.AuthProvider,
		Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups,
	}
	f, err := os.CreateTemp("", "admitkit-dev-kubeconfig-") // readable by the user only
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return f.Name(), clientcmd.WriteToFile(*k, f.Name())
}
