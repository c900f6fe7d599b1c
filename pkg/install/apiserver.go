// SPDX-License-Identifier: Apache-2.0

package install

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

// APIServerOptions say how API servers make themselves known to webhook servers: by default
// not at all. What the webhook servers ask for is webhook.ClientAuth. They also say where there
// are configurations of webhooks besides those that came by the API.
type APIServerOptions struct {
	// KubeconfigFile is where the kubeconfig will be for the API server, which may be in a
	// container: an absolute path. Required with Users.
	KubeconfigFile string
	// Users are the credentials, one for each host. Webhooks at other hosts get none. Required
	// unless there are manifests.
	Users []APIServerUser
	// MutatingManifests and ValidatingManifests are the folders where the API server will find
	// static manifests, as manifest.Static makes them: absolute paths, or empty. Each kind has a
	// folder of its own. An API server before 1.36 does not know the field and does not start; nor
	// does 1.36 without its feature gate ManifestBasedAdmissionControlConfig, nor any without the folder.
	MutatingManifests, ValidatingManifests string
}

// An APIServerUser is what an API server shows to the webhooks at one host. One of Service, URL
// and Host says which, and there is a client certificate, or a token, or a name with password,
// or a client certificate with one of the others. Who is shown a token or a password can pass
// for the API server elsewhere, so webhooks of different owners should have different ones.
type APIServerUser struct {
	// Service is that of a webhook's clientConfig, with its port.
	Service *admissionregistrationv1.ServiceReference
	// URL is that of a webhook's clientConfig.
	URL string
	// Host is host:port, or *.parent.domain:port for all hosts below, where the port may be
	// missing if it is 443. The longest match counts.
	Host string

	// CertFile and KeyFile hold a client certificate and its key in PEM, by absolute paths. The
	// API server sees new ones within five minutes.
	CertFile, KeyFile string
	// TokenFile holds a bearer token, by an absolute path. The API server sees a new one within
	// a minute. Token is the token itself, which changes when the API server starts.
	TokenFile, Token string
	// Username and Password do, too.
	Username, Password string
}

// APIServerFiles returns two files for the API servers of a cluster, always the same for the
// same options: the one that the flag --admission-control-config-file names, and the kubeconfig
// that goes to o.KubeconfigFile. If there is a file of the first kind already, add the plugins
// to it. The kubeconfig may hold secrets; without Users it is nil.
func APIServerFiles(o APIServerOptions) (admissionConfiguration, kubeconfig []byte, err error) {
	users, err := namedUsers(o.Users)
	if err := errors.Join(o.check(), err); err != nil {
		return nil, nil, fmt.Errorf("cannot write the files for the API server: %w", err)
	}
	admissionConfiguration, err = written(
		"# For the flag --admission-control-config-file of kube-apiserver.\n",
		admission{APIVersion: "apiserver.config.k8s.io/v1", Kind: "AdmissionConfiguration", Plugins: o.plugins()})
	if err != nil || len(users) == 0 {
		return admissionConfiguration, nil, err
	}
	kubeconfig, err = written(
		"# What kube-apiserver shows to webhooks. Of a kubeconfig it reads the users only, named by\n# the hosts of the webhooks.\n",
		kubeconfigUsers{APIVersion: "v1", Kind: "Config", Users: users})
	return admissionConfiguration, kubeconfig, err
}

func (o *APIServerOptions) check() error {
	var errs []error
	absolute := func(field, value string) {
		if !path.IsAbs(value) {
			errs = append(errs, fmt.Errorf("%s is %q: the API server wants an absolute path", field, value))
		}
	}
	manifests := o.MutatingManifests != "" || o.ValidatingManifests != ""
	if o.KubeconfigFile != "" || !manifests || len(o.Users) > 0 {
		absolute("KubeconfigFile", o.KubeconfigFile)
		if len(o.Users) == 0 {
			errs = append(errs, errors.New("there are no Users: without, the API server needs no files"))
		}
	}
	if o.MutatingManifests != "" {
		absolute("MutatingManifests", o.MutatingManifests)
	}
	if o.ValidatingManifests != "" {
		absolute("ValidatingManifests", o.ValidatingManifests)
	}
	if manifests && path.Clean(o.MutatingManifests) == path.Clean(o.ValidatingManifests) {
		errs = append(errs, fmt.Errorf("MutatingManifests and ValidatingManifests are both %q: the API server refuses a folder that holds the other kind", o.MutatingManifests))
	}
	return errors.Join(errs...)
}

// plugins are those that there is something to say to.
func (o *APIServerOptions) plugins() []admissionPlugin {
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

// The two documents, as far as they are needed. The API server's own types would bring all of
// its admission code along.
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
		Name string `json:"name"`
		User shown  `json:"user"`
	}
	shown struct {
		ClientCertificate string `json:"client-certificate,omitempty"`
		ClientKey         string `json:"client-key,omitempty"`
		TokenFile         string `json:"tokenFile,omitempty"`
		Token             string `json:"token,omitempty"`
		Username          string `json:"username,omitempty"`
		Password          string `json:"password,omitempty"`
	}
)

func written(comment string, document any) ([]byte, error) {
	text, err := yaml.Marshal(document)
	return append([]byte(comment), text...), err
}

// namedUsers sorts the users by name.
func namedUsers(users []APIServerUser) ([]kubeconfigUser, error) {
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
		all = append(all, kubeconfigUser{name, shown{u.CertFile, u.KeyFile, u.TokenFile, u.Token, u.Username, u.Password}})
	}
	slices.SortFunc(all, func(a, b kubeconfigUser) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(errs...)
}

// name is what the API server looks for: see defaultAuthenticationInfoResolver in
// k8s.io/apiserver/pkg/util/webhook. It has a port always: without, which the API server knows
// for 443, *.domain:443 would come before host.domain.
func (u *APIServerUser) name() (string, error) {
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
		err = errors.New("kubernetes.default.svc:443 is the API server itself, which uses other credentials for it")
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
		return net.JoinHostPort(u.Host, "443"), nil // [::1] gets a second pair of brackets there, too
	}
	return u.Host, nil
}

// patternHost refuses names by which nothing is ever found, and those that show credentials to
// webhooks of others, which could then pass for an API server.
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
		return "", fmt.Errorf("Host is %q: that would show the credentials to webhooks of others; name a service, or *.namespace.svc", name)
	case !wild && net.ParseIP(host) != nil:
	case len(validation.IsDNS1123Subdomain(parent)) > 0:
		return "", fmt.Errorf("Host is %q: want host:port or *.parent.domain:port, in lower case", name)
	}
	return net.JoinHostPort(host, port), nil
}

func (u *APIServerUser) checkCredentials(name string) error {
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
		return fmt.Errorf("TokenFile and Token for %s: set one", name)
	case token && basic:
		return fmt.Errorf("a token and a password for %s: with both every call fails; set one", name)
	case !cert && !token && !basic:
		return fmt.Errorf("there are no credentials for %s: set CertFile and KeyFile, TokenFile, or Username and Password", name)
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
