// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/admitkit/admitkit/internal/problem"
)

// accountName is the name of the ServiceAccount and the ClusterRole of hooks that read a local API server.
const accountName = "admitkit-dev-hooks"

// access returns the client configuration of hooks that read the cluster. On a local API server, the hooks are a
// ServiceAccount with just the permissions that they declare, as in a Pod: a missing permission shows at once. In an
// existing cluster, they use the credentials of the user.
func (d *session) access(ctx context.Context, rules []rbacv1.PolicyRule) (*rest.Config, error) {
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
	config, err := accountOf(ctx, d.target.(*localServer).server.Config, rules)
	if err != nil {
		return nil, problem.New("cannot create the ServiceAccount of the hooks: %w", err)
	}
	return config, nil
}

// accountOf creates the ServiceAccount with the rules, or replaces its rules, and returns its client configuration.
func accountOf(ctx context.Context, admin *rest.Config, rules []rbacv1.PolicyRule) (*rest.Config, error) {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Name: accountName}
	accounts := clients.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	if _, err := clients.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		if _, err := clients.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: accountName},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: accountName}},
	}
	if _, err := clients.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
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
