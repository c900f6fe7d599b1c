// SPDX-License-Identifier: Apache-2.0

// Package apiserverauth generates the two files that kube-apiserver needs to authenticate itself to
// admission webhooks: an AdmissionConfiguration and a kubeconfig. By default an API server sends no
// credentials. The server of the webhooks checks them with webhook.ClientAuth.
package apiserverauth

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/credentials"
)

// Options name the credentials that API servers send to webhooks, and the folders of static
// webhook configurations.
type Options struct {
	// KubeconfigFile is the absolute path of the kubeconfig, as the API server sees it: the API
	// server may run in a container. Required with Users.
	KubeconfigFile string
	// Users are the credentials, one for each host. Webhooks at other hosts receive none. Required
	// unless a folder of manifests is set.
	Users []User
	// MutatingManifests and ValidatingManifests are the absolute paths of the folders from which the API
	// server loads static manifests, which manifest.Static returns. Empty means none. Each kind needs its own
	// folder. The API server does not start if it is older than 1.36, if its feature gate
	// ManifestBasedAdmissionControlConfig is off, or if the folder does not exist.
	MutatingManifests, ValidatingManifests string
}

// A User holds the credentials that an API server sends to the webhooks at one host. Set exactly
// one of Service, URL and Host. Set a client certificate, a token, or a user name with a password;
// a client certificate may be combined with a token or a password. A webhook that receives a token
// or a password can impersonate the API server elsewhere, so do not use the same one for webhooks
// of different owners.
type User struct {
	// Service is the service of a webhook's clientConfig, with its port.
	Service *admissionregistrationv1.ServiceReference
	// URL is the url of a webhook's clientConfig.
	URL string
	// Host is host:port, or *.parent.domain:port for all hosts below that domain. The port may be
	// omitted if it is 443. The longest match counts.
	Host string

	// CertFile and KeyFile are the absolute paths of a client certificate and its key in PEM. The
	// API server reloads them within five minutes.
	CertFile, KeyFile string
	// TokenFile is the absolute path of a file with a bearer token. The API server reloads it
	// within a minute. Token is the token itself; the API server reads it only when it starts.
	TokenFile, Token string
	// Username and Password are the credentials of HTTP basic authentication. The API server reads
	// them only when it starts.
	Username, Password string
}

// Files returns the content of the two files: the one for the flag
// --admission-control-config-file, and the kubeconfig to store at o.KubeconfigFile. Equal options
// give equal files. If the API server already has an admission configuration, add the plugins in
// the first file to it. The kubeconfig may contain secrets. Without Users the kubeconfig is nil.
func Files(o Options) (admissionConfiguration, kubeconfig []byte, err error) {
	users, err := kubeconfigUsersOf(o.Users)
	if err := errors.Join(o.check(), err); err != nil {
		return nil, nil, fmt.Errorf("cannot write the files for the API server: %w", err)
	}
	admissionConfiguration, err = marshalWithComment(
		"# For the flag --admission-control-config-file of kube-apiserver.\n",
		admission{APIVersion: "apiserver.config.k8s.io/v1", Kind: "AdmissionConfiguration", Plugins: o.plugins()})
	if err != nil || len(users) == 0 {
		return admissionConfiguration, nil, err
	}
	kubeconfig, err = marshalWithComment(
		"# The credentials that kube-apiserver sends to webhooks. It reads only the users of this\n# kubeconfig. The name of a user is the host of the webhooks.\n",
		kubeconfigUsers{APIVersion: "v1", Kind: "Config", Users: users})
	return admissionConfiguration, kubeconfig, err
}

func (o *Options) check() error {
	var errs []error
	absolute := func(field, value string) {
		if !path.IsAbs(value) {
			errs = append(errs, fmt.Errorf("%s is %q: the API server needs an absolute path", field, value))
		}
	}
	manifests := o.MutatingManifests != "" || o.ValidatingManifests != ""
	if o.KubeconfigFile != "" || !manifests || len(o.Users) > 0 {
		absolute("KubeconfigFile", o.KubeconfigFile)
		if len(o.Users) == 0 {
			errs = append(errs, errors.New("Users is empty: an API server without credentials needs no files"))
		}
	}
	if o.MutatingManifests != "" {
		absolute("MutatingManifests", o.MutatingManifests)
	}
	if o.ValidatingManifests != "" {
		absolute("ValidatingManifests", o.ValidatingManifests)
	}
	if manifests && path.Clean(o.MutatingManifests) == path.Clean(o.ValidatingManifests) {
		errs = append(errs, fmt.Errorf("MutatingManifests and ValidatingManifests are both %q: the API server rejects a folder that contains both kinds", o.MutatingManifests))
	}
	return errors.Join(errs...)
}

// plugins returns the webhook admission plugins that have a kubeconfig or a folder of manifests.
func (o *Options) plugins() []admissionPlugin {
	var all []admissionPlugin
	for _, p := range []struct{ name, manifests string }{
		{"MutatingAdmissionWebhook", o.MutatingManifests}, {"ValidatingAdmissionWebhook", o.ValidatingManifests},
	} {
		if o.KubeconfigFile != "" || p.manifests != "" {
			all = append(all, admissionPlugin{p.name, webhookAdmission{
				"apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration", o.KubeconfigFile, p.manifests,
			}})
		}
	}
	return all
}

// These types have only the fields that Files writes. The API server's own types would link all of
// its admission code.
type (
	admission struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Plugins    []admissionPlugin `json:"plugins"`
	}
	admissionPlugin struct {
		Name          string           `json:"name"`
		Configuration webhookAdmission `json:"configuration"`
	}
	webhookAdmission struct {
		APIVersion     string `json:"apiVersion"`
		Kind           string `json:"kind"`
		KubeConfigFile string `json:"kubeConfigFile,omitempty"`
		StaticDir      string `json:"staticManifestsDir,omitempty"`
	}
	kubeconfigUsers struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Users      []kubeconfigUser `json:"users"`
	}
	kubeconfigUser struct {
		Name string          `json:"name"`
		User userCredentials `json:"user"`
	}
	userCredentials struct {
		ClientCertificate string `json:"client-certificate,omitempty"`
		ClientKey         string `json:"client-key,omitempty"`
		TokenFile         string `json:"tokenFile,omitempty"`
		Token             string `json:"token,omitempty"`
		Username          string `json:"username,omitempty"`
		Password          string `json:"password,omitempty"`
	}
)

func marshalWithComment(comment string, document any) ([]byte, error) {
	text, err := yaml.Marshal(document)
	return append([]byte(comment), text...), err
}

// kubeconfigUsersOf checks the users and returns them sorted by name.
func kubeconfigUsersOf(users []User) ([]kubeconfigUser, error) {
	var all []kubeconfigUser
	var errs []error
	seen := map[string]int{}
	for i, u := range users {
		name, err := u.name()
		if err == nil {
			err = u.checkCredentials(name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("Users[%d]: %w", i, err))
			continue
		}
		if first, twice := seen[name]; twice {
			errs = append(errs, fmt.Errorf("Users[%d]: %s has the credentials of Users[%d] already", i, name, first))
		}
		seen[name] = i
		all = append(all, kubeconfigUser{name, userCredentials{u.CertFile, u.KeyFile, u.TokenFile, u.Token, u.Username, u.Password}})
	}
	slices.SortFunc(all, func(a, b kubeconfigUser) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(errs...)
}

// name returns the user's name in the kubeconfig, by which the API server finds it: see
// defaultAuthenticationInfoResolver in k8s.io/apiserver/pkg/util/webhook. It always has a port: the
// API server would prefer *.domain:443 to a host.domain without one.
func (u *User) name() (string, error) {
	var name string
	var err error
	switch {
	case u.Service != nil && u.URL == "" && u.Host == "":
		name, err = serviceHost(u.Service)
	case u.Service == nil && u.URL != "" && u.Host == "":
		name, err = urlHost(u.URL)
	case u.Service == nil && u.URL == "" && u.Host != "":
		name, err = patternHost(u.Host)
	default:
		return "", errors.New("set one of Service, URL and Host")
	}
	if err == nil && name == "kubernetes.default.svc:443" {
		err = errors.New("kubernetes.default.svc:443 is the API server itself, which authenticates to itself in another way")
	}
	return name, err
}

func serviceHost(s *admissionregistrationv1.ServiceReference) (string, error) {
	port := int32(443)
	if s.Port != nil {
		port = *s.Port
	}
	if s.Name == "" || s.Namespace == "" || port < 1 || port > 65535 {
		return "", fmt.Errorf("Service needs a name, a namespace and a port, got %q, %q and %d", s.Name, s.Namespace, port)
	}
	return net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(port))), nil
}

func urlHost(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("URL is %q: want https://host[:port], as in the webhook's configuration", text)
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Host, "443"), nil // the API server also puts a second pair of brackets around [::1]
	}
	return u.Host, nil
}

// patternHost returns the name with its port. It refuses names that the API server would never look
// up, and wildcards that send the credentials to the webhooks of others, who could then impersonate
// the API server.
func patternHost(name string) (string, error) {
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		host, port = name, "443"
	}
	if strings.Contains(name, "/") {
		return "", fmt.Errorf("Host is %q: want host:port, or set URL", name)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || port != strconv.Itoa(n) {
		return "", fmt.Errorf("Host is %q: the port is not a number from 1 to 65535", name)
	}
	parent, wild := strings.CutPrefix(host, "*.")
	switch {
	case host == "*", wild && !strings.Contains(parent, "."):
		return "", fmt.Errorf("Host is %q: that would send the credentials to webhooks of others; name a service, or *.namespace.svc", name)
	case !wild && net.ParseIP(host) != nil:
	case len(validation.IsDNS1123Subdomain(parent)) > 0:
		return "", fmt.Errorf("Host is %q: want host:port or *.parent.domain:port, in lower case", name)
	}
	return net.JoinHostPort(host, port), nil
}

func (u *User) checkCredentials(name string) error {
	for _, file := range []struct{ field, path string }{{"CertFile", u.CertFile}, {"KeyFile", u.KeyFile}, {"TokenFile", u.TokenFile}} {
		if file.path != "" && !path.IsAbs(file.path) {
			return fmt.Errorf("%s for %s is %q: want an absolute path on the API server", file.field, name, file.path)
		}
	}
	cert, token, basic := u.CertFile != "", u.TokenFile != "" || u.Token != "", u.Username != "" || u.Password != ""
	switch {
	case cert != (u.KeyFile != ""):
		return fmt.Errorf("CertFile and KeyFile for %s: set both or neither", name)
	case u.TokenFile != "" && u.Token != "":
		return fmt.Errorf("TokenFile and Token are both set for %s: set only one", name)
	case token && basic:
		return fmt.Errorf("a token and a password for %s: every call with both fails; set one", name)
	case !cert && !token && !basic:
		return fmt.Errorf("no credentials for %s: set CertFile and KeyFile, TokenFile, or Username and Password", name)
	case token && u.Token != "":
		if err := credentials.CheckToken(u.Token); err != nil {
			return fmt.Errorf("Token for %s %w", name, err)
		}
	case basic:
		if err := credentials.CheckPair(u.Username, u.Password); err != nil {
			return fmt.Errorf("Username with Password for %s %w", name, err)
		}
	}
	return nil
}
