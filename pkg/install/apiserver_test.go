// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	webhookconfig "k8s.io/apiserver/pkg/admission/plugin/webhook/config"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/install"
)

func service(namespace, name string, port int32) *admissionregistrationv1.ServiceReference {
	s := &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name}
	if port != 0 {
		s.Port = &port
	}
	return s
}

func ExampleAPIServerFiles() {
	configuration, kubeconfig, err := install.APIServerFiles(install.APIServerOptions{
		KubeconfigFile: "/etc/kubernetes/admission/webhooks.kubeconfig",
		Users: []install.APIServerUser{{
			Service:  &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hooks"},
			CertFile: "/etc/kubernetes/pki/webhook-client.crt",
			KeyFile:  "/etc/kubernetes/pki/webhook-client.key",
		}},
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s---\n%s", configuration, kubeconfig)
	// Output:
	// # For the flag --admission-control-config-file of kube-apiserver.
	// apiVersion: apiserver.config.k8s.io/v1
	// kind: AdmissionConfiguration
	// plugins:
	// - configuration:
	//     apiVersion: apiserver.config.k8s.io/v1
	//     kind: WebhookAdmissionConfiguration
	//     kubeConfigFile: /etc/kubernetes/admission/webhooks.kubeconfig
	//   name: MutatingAdmissionWebhook
	// - configuration:
	//     apiVersion: apiserver.config.k8s.io/v1
	//     kind: WebhookAdmissionConfiguration
	//     kubeConfigFile: /etc/kubernetes/admission/webhooks.kubeconfig
	//   name: ValidatingAdmissionWebhook
	// ---
	// # What kube-apiserver shows to webhooks. Of a kubeconfig it reads the users only, named by
	// # the hosts of the webhooks.
	// apiVersion: v1
	// kind: Config
	// users:
	// - name: hooks.shop.svc:443
	//   user:
	//     client-certificate: /etc/kubernetes/pki/webhook-client.crt
	//     client-key: /etc/kubernetes/pki/webhook-client.key
}

// ExampleAPIServerFiles_manifests is for static manifests only.
func ExampleAPIServerFiles_manifests() {
	configuration, _, err := install.APIServerFiles(install.APIServerOptions{
		MutatingManifests: "/etc/kubernetes/admission/mutating", ValidatingManifests: "/etc/kubernetes/admission/validating",
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s", configuration)
	// Output:
	// # For the flag --admission-control-config-file of kube-apiserver.
	// apiVersion: apiserver.config.k8s.io/v1
	// kind: AdmissionConfiguration
	// plugins:
	// - configuration:
	//     apiVersion: apiserver.config.k8s.io/v1
	//     kind: WebhookAdmissionConfiguration
	//     staticManifestsDir: /etc/kubernetes/admission/mutating
	//   name: MutatingAdmissionWebhook
	// - configuration:
	//     apiVersion: apiserver.config.k8s.io/v1
	//     kind: WebhookAdmissionConfiguration
	//     staticManifestsDir: /etc/kubernetes/admission/validating
	//   name: ValidatingAdmissionWebhook
}

// resolver reads the files as the API server does: by its own code.
func resolver(t *testing.T, o install.APIServerOptions) webhookutil.AuthenticationInfoResolver {
	t.Helper()
	configuration, kubeconfig, err := install.APIServerFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "admission.yaml")
	for path, content := range map[string][]byte{path: configuration, o.KubeconfigFile: kubeconfig} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	apiserverinstall.Install(scheme)
	plugins := []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"}
	provider, err := admission.ReadAdmissionConfiguration(plugins, path, scheme)
	if err != nil {
		t.Fatal(err)
	}
	for _, plugin := range plugins {
		reader, err := provider.ConfigFor(plugin)
		if err != nil || reader == nil {
			t.Fatalf("%s: %v, %v", plugin, reader, err)
		}
		config, err := webhookconfig.LoadConfig(reader)
		if err != nil || config.KubeConfigFile != o.KubeconfigFile {
			t.Fatalf("%s: %v, %v", plugin, config, err)
		}
	}
	r, err := webhookutil.NewDefaultAuthenticationInfoResolver(o.KubeconfigFile)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheAPIServerFindsTheCredentials(t *testing.T) {
	dir := t.TempDir()
	tokenFile := filepath.Join(dir, "token")
	if err := os.WriteFile(tokenFile, []byte("from-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	user := func(u install.APIServerUser, token string) install.APIServerUser {
		u.Token = token
		return u
	}
	r := resolver(t, install.APIServerOptions{
		KubeconfigFile: filepath.Join(dir, "webhooks.kubeconfig"),
		Users: []install.APIServerUser{
			user(install.APIServerUser{Service: service("shop", "hooks", 0)}, "service"),
			user(install.APIServerUser{Service: service("shop", "hooks", 8443)}, "service-8443"),
			user(install.APIServerUser{Host: "*.shop.svc"}, "all-443"),
			user(install.APIServerUser{Host: "*.shop.svc:9443"}, "all-9443"),
			user(install.APIServerUser{Host: "special.shop.svc"}, "special"),
			user(install.APIServerUser{URL: "https://Hooks.example.com/a/b"}, "url"),
			user(install.APIServerUser{URL: "https://hooks.example.com:8443"}, "url-8443"),
			user(install.APIServerUser{URL: "https://[::1]/x"}, "ipv6"),
			user(install.APIServerUser{URL: "https://[::1]:9443/x"}, "ipv6-9443"),
			user(install.APIServerUser{Host: "10.0.0.1"}, "ip"),
			user(install.APIServerUser{Host: "[fd00::1]:8443"}, "ipv6-8443"),
			user(install.APIServerUser{Host: "*.example.com"}, "all"),
			{Service: service("bank", "file", 0), TokenFile: tokenFile},
			{Service: service("bank", "basic", 0), Username: "ada", Password: `l0ve: "lace" #`},
			{Service: service("bank", "cert", 0), CertFile: dir + "/c", KeyFile: dir + "/k"},
			{Service: service("bank", "cert-token", 0), CertFile: dir + "/c", KeyFile: dir + "/k", Token: "no"}, // YAML's word for false
			{Service: service("bank", "number", 0), Token: "0123"},
		},
	})
	of := func(c *rest.Config, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join([]string{c.BearerToken, c.BearerTokenFile, c.Username, c.Password, c.CertFile, c.KeyFile}, "|")
	}
	for _, in := range []struct{ host, want string }{
		{"hooks.shop.svc:443", "service|||||"},
		{"hooks.shop.svc:8443", "service-8443|||||"},
		{"hooks.shop.svc:9443", "all-9443|||||"},
		{"hooks.shop.svc:1", "|||||"},
		{"other.shop.svc:443", "all-443|||||"},
		{"special.shop.svc:443", "special|||||"},
		{"hooks.other.svc:443", "|||||"},
		{"Hooks.example.com:443", "url|||||"},
		{"hooks.example.com:443", "all|||||"},
		{"hooks.example.com:8443", "url-8443|||||"},
		{"deep.hooks.example.com:443", "all|||||"},
		{"example.com:443", "|||||"},
		{"[[::1]]:443", "ipv6|||||"}, // sic
		{"[::1]:9443", "ipv6-9443|||||"},
		{"10.0.0.1:443", "ip|||||"},
		{"[fd00::1]:8443", "ipv6-8443|||||"},
		{"file.bank.svc:443", "from-file|" + tokenFile + "||||"},
		{"basic.bank.svc:443", `||ada|l0ve: "lace" #||`},
		{"cert.bank.svc:443", "||||" + dir + "/c|" + dir + "/k"},
		{"cert-token.bank.svc:443", "no||||" + dir + "/c|" + dir + "/k"},
		{"number.bank.svc:443", "0123|||||"},
	} {
		t.Run(in.host, func(t *testing.T) {
			if got := of(r.ClientConfigFor(in.host)); got != in.want {
				t.Errorf("got %s, want %s", got, in.want)
			}
		})
	}
	if got := of(r.ClientConfigForService("hooks", "shop", 8443)); got != "service-8443|||||" {
		t.Errorf("got %s", got)
	}
}

func TestTheFilesDependOnTheOptionsOnly(t *testing.T) {
	users := []install.APIServerUser{{Host: "b.shop.svc", Token: "b"}, {Host: "a.shop.svc", Token: "a"}}
	o := install.APIServerOptions{KubeconfigFile: "/etc/k", Users: users}
	first, firstUsers, err := install.APIServerFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Users = []install.APIServerUser{users[1], users[0]}
	second, secondUsers, err := install.APIServerFiles(o)
	if err != nil || string(first) != string(second) || string(firstUsers) != string(secondUsers) {
		t.Errorf("%v\n%s%s\n%s%s", err, first, firstUsers, second, secondUsers)
	}
}

func TestAPIServerFilesThatCannotWork(t *testing.T) {
	at := service("shop", "hooks", 0)
	for _, in := range []struct {
		reason string
		user   install.APIServerUser
		want   string
	}{
		{"no host", install.APIServerUser{Token: "t"}, "Users[0]: set one of Service, URL and Host"},
		{"two hosts", install.APIServerUser{Service: at, Host: "a.b.svc", Token: "t"}, "set one of Service, URL and Host"},
		{"half a service", install.APIServerUser{Service: service("", "hooks", 0), Token: "t"}, `Service needs a name, a namespace and a port, got "hooks", "" and 443`},
		{"no port", install.APIServerUser{Service: service("shop", "hooks", 70000), Token: "t"}, "and 70000"},
		{"plain HTTP", install.APIServerUser{URL: "http://example.com", Token: "t"}, `URL is "http://example.com": want https://host[:port]`},
		{"a password in a URL", install.APIServerUser{URL: "https://a:b@example.com", Token: "t"}, "want https://host[:port]"},
		{"a URL for a host", install.APIServerUser{Host: "https://example.com", Token: "t"}, `Host is "https://example.com": want`},
		{"capitals", install.APIServerUser{Host: "Hooks.shop.svc", Token: "t"}, "in lower case"},
		{"a name for a port", install.APIServerUser{Host: "hooks.shop.svc:https", Token: "t"}, "the port is not a number"},
		{"a zero before a port", install.APIServerUser{Host: "hooks.shop.svc:0443", Token: "t"}, "the port is not a number"},
		{"everybody", install.APIServerUser{Host: "*", Token: "t"}, `Host is "*": that would show the credentials to webhooks of others`},
		{"all services", install.APIServerUser{Host: "*.svc:443", Token: "t"}, "to webhooks of others"},
		{"a star within", install.APIServerUser{Host: "a.*.svc", Token: "t"}, "want host:port"},
		{"the API server", install.APIServerUser{Service: service("default", "kubernetes", 0), Token: "t"}, "is the API server itself"},
		{"nothing", install.APIServerUser{Service: at}, "there are no credentials for hooks.shop.svc:443: set CertFile and KeyFile"},
		{"a relative certificate", install.APIServerUser{Service: at, CertFile: "c", KeyFile: "/k"}, `CertFile for hooks.shop.svc:443 is "c": want an absolute path`},
		{"a relative key", install.APIServerUser{Service: at, CertFile: "/c", KeyFile: "k"}, `KeyFile for`},
		{"a relative token", install.APIServerUser{Service: at, TokenFile: "./t"}, `TokenFile for`},
		{"no key", install.APIServerUser{Service: at, CertFile: "/c"}, "CertFile and KeyFile for hooks.shop.svc:443: set both or neither"},
		{"no certificate", install.APIServerUser{Service: at, KeyFile: "/k", Token: "t"}, "set both or neither"},
		{"two tokens", install.APIServerUser{Service: at, TokenFile: "/t", Token: "t"}, "TokenFile and Token for hooks.shop.svc:443: set one"},
		{"token and password", install.APIServerUser{Service: at, TokenFile: "/t", Username: "a", Password: "b"}, "with both every call fails; set one"},
		{"a token with a line end", install.APIServerUser{Service: at, Token: "secret\n"}, "Token for hooks.shop.svc:443 is not a bearer token"},
		{"no password", install.APIServerUser{Service: at, Username: "a"}, "Username with Password for hooks.shop.svc:443 is not a user name with a password"},
		{"no user", install.APIServerUser{Service: at, Password: "secret"}, "is not a user name with a password"},
		{"a colon", install.APIServerUser{Service: at, Username: "a:b", Password: "secret"}, "has a colon in the user name"},
		{"a line end", install.APIServerUser{Service: at, Username: "a", Password: "secret\n"}, "has control characters"},
		{"not UTF-8", install.APIServerUser{Service: at, Username: "a", Password: "secret\xff"}, "is not UTF-8"},
	} {
		t.Run(in.reason, func(t *testing.T) {
			_, _, err := install.APIServerFiles(install.APIServerOptions{KubeconfigFile: "/k", Users: []install.APIServerUser{in.user}})
			if err == nil || !strings.Contains(err.Error(), in.want) || !strings.HasPrefix(err.Error(), "cannot write the files for the API server: ") {
				t.Errorf("\n got %v\nwant %s", err, in.want)
			} else if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has a secret in it: %v", err)
			}
		})
	}
	_, _, err := install.APIServerFiles(install.APIServerOptions{KubeconfigFile: "etc/k", Users: []install.APIServerUser{
		{Host: "a.shop.svc", Token: "t"}, {Service: service("shop", "a", 443), Token: "u"}, {},
	}})
	const want = `cannot write the files for the API server: KubeconfigFile is "etc/k": the API server wants an absolute path
Users[1]: a.shop.svc:443 has the credentials of Users[0] already
Users[2]: set one of Service, URL and Host`
	if err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	if _, _, err := install.APIServerFiles(install.APIServerOptions{KubeconfigFile: "/k"}); err == nil || !strings.Contains(err.Error(), "there are no Users") {
		t.Errorf("got %v", err)
	}
}

func TestManifestsForTheAPIServer(t *testing.T) {
	users := []install.APIServerUser{{Host: "a.shop.svc", Token: "t"}}
	const mutating, validating = "name: MutatingAdmissionWebhook", "name: ValidatingAdmissionWebhook"
	for _, in := range []struct {
		reason     string
		o          install.APIServerOptions
		want, none []string
		wantErr    string
	}{
		{"with credentials", install.APIServerOptions{KubeconfigFile: "/k", Users: users, MutatingManifests: "/m"},
			[]string{mutating, validating, "kubeConfigFile: /k\n    staticManifestsDir: /m\n"}, nil, ""},
		{"one plugin is enough", install.APIServerOptions{ValidatingManifests: "/v"}, []string{validating, "staticManifestsDir: /v"}, []string{mutating, "kubeConfigFile"}, ""},
		{"a relative folder", install.APIServerOptions{MutatingManifests: "m"}, nil, nil, `MutatingManifests is "m": the API server wants an absolute path`},
		{"and the other", install.APIServerOptions{ValidatingManifests: "./v"}, nil, nil, `ValidatingManifests is "./v": the API server wants an absolute path`},
		{"one folder for both", install.APIServerOptions{MutatingManifests: "/m", ValidatingManifests: "/m/"}, nil, nil, "the API server refuses a folder that holds the other kind"},
		{"users in no file", install.APIServerOptions{MutatingManifests: "/m", Users: users}, nil, nil, `KubeconfigFile is "": the API server wants`},
		{"a file without users", install.APIServerOptions{MutatingManifests: "/m", KubeconfigFile: "/k"}, nil, nil, "there are no Users"},
	} {
		t.Run(in.reason, func(t *testing.T) {
			configuration, kubeconfig, err := install.APIServerFiles(in.o)
			if in.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), in.wantErr) {
					t.Errorf("\n got %v\nwant %s", err, in.wantErr)
				}
				return
			}
			if err != nil || (kubeconfig != nil) != (in.o.Users != nil) {
				t.Fatalf("%v, kubeconfig %q", err, kubeconfig)
			}
			for _, want := range in.want {
				if !strings.Contains(string(configuration), want) {
					t.Errorf("no %q in\n%s", want, configuration)
				}
			}
			for _, none := range in.none {
				if strings.Contains(string(configuration), none) {
					t.Errorf("%q in\n%s", none, configuration)
				}
			}
		})
	}
}
