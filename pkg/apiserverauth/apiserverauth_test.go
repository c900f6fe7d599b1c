// SPDX-License-Identifier: Apache-2.0

package apiserverauth_test

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

	"github.com/admitkit/admitkit/pkg/apiserverauth"
)

func service(namespace, name string, port int32) *admissionregistrationv1.ServiceReference {
	s := &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name}
	if port != 0 {
		s.Port = &port
	}
	return s
}

func ExampleFiles() {
	configuration, kubeconfig, err := apiserverauth.Files(apiserverauth.Options{
		KubeconfigFile: "/etc/kubernetes/admission/webhooks.kubeconfig",
		Users: []apiserverauth.User{{
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
	// # The credentials that kube-apiserver sends to webhooks. It reads only the users of this
	// # kubeconfig. The name of a user is the host of the webhooks.
	// apiVersion: v1
	// kind: Config
	// users:
	// - name: hooks.shop.svc:443
	//   user:
	//     client-certificate: /etc/kubernetes/pki/webhook-client.crt
	//     client-key: /etc/kubernetes/pki/webhook-client.key
}

// Without Users, the generated configuration only names the folders of static manifests.
func ExampleFiles_manifests() {
	configuration, _, err := apiserverauth.Files(apiserverauth.Options{
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

// resolver generates the files, and reads them with the API server's own code.
func resolver(t *testing.T, o apiserverauth.Options) webhookutil.AuthenticationInfoResolver {
	t.Helper()
	configuration, kubeconfig, err := apiserverauth.Files(o)
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

func TestAPIServerFindsTheCredentials(t *testing.T) {
	dir := t.TempDir()
	tokenFile := filepath.Join(dir, "token")
	if err := os.WriteFile(tokenFile, []byte("from-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	user := func(u apiserverauth.User, token string) apiserverauth.User {
		u.Token = token
		return u
	}
	r := resolver(t, apiserverauth.Options{
		KubeconfigFile: filepath.Join(dir, "webhooks.kubeconfig"),
		Users: []apiserverauth.User{
			user(apiserverauth.User{Service: service("shop", "hooks", 0)}, "service"),
			user(apiserverauth.User{Service: service("shop", "hooks", 8443)}, "service-8443"),
			user(apiserverauth.User{Host: "*.shop.svc"}, "all-443"),
			user(apiserverauth.User{Host: "*.shop.svc:9443"}, "all-9443"),
			user(apiserverauth.User{Host: "special.shop.svc"}, "special"),
			user(apiserverauth.User{URL: "https://Hooks.example.com/a/b"}, "url"),
			user(apiserverauth.User{URL: "https://hooks.example.com:8443"}, "url-8443"),
			user(apiserverauth.User{URL: "https://[::1]/x"}, "ipv6"),
			user(apiserverauth.User{URL: "https://[::1]:9443/x"}, "ipv6-9443"),
			user(apiserverauth.User{Host: "10.0.0.1"}, "ip"),
			user(apiserverauth.User{Host: "[fd00::1]:8443"}, "ipv6-8443"),
			user(apiserverauth.User{Host: "*.example.com"}, "all"),
			{Service: service("bank", "file", 0), TokenFile: tokenFile},
			{Service: service("bank", "basic", 0), Username: "ada", Password: `l0ve: "lace" #`},
			{Service: service("bank", "cert", 0), CertFile: dir + "/c", KeyFile: dir + "/k"},
			{Service: service("bank", "cert-token", 0), CertFile: dir + "/c", KeyFile: dir + "/k", Token: "no"}, // false in YAML
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
		{"[[::1]]:443", "ipv6|||||"}, // the API server adds a second pair of brackets
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

func TestFilesAreEqualForEqualOptions(t *testing.T) {
	users := []apiserverauth.User{{Host: "b.shop.svc", Token: "b"}, {Host: "a.shop.svc", Token: "a"}}
	o := apiserverauth.Options{KubeconfigFile: "/etc/k", Users: users}
	first, firstUsers, err := apiserverauth.Files(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Users = []apiserverauth.User{users[1], users[0]}
	second, secondUsers, err := apiserverauth.Files(o)
	if err != nil || string(first) != string(second) || string(firstUsers) != string(secondUsers) {
		t.Errorf("%v\n%s%s\n%s%s", err, first, firstUsers, second, secondUsers)
	}
}

func TestFilesRejectsInvalidOptions(t *testing.T) {
	at := service("shop", "hooks", 0)
	for _, in := range []struct {
		reason string
		user   apiserverauth.User
		want   string
	}{
		{"no host", apiserverauth.User{Token: "t"}, "Users[0]: set one of Service, URL and Host"},
		{"two hosts", apiserverauth.User{Service: at, Host: "a.b.svc", Token: "t"}, "set one of Service, URL and Host"},
		{"half a service", apiserverauth.User{Service: service("", "hooks", 0), Token: "t"}, `Service needs a name, a namespace and a port, got "hooks", "" and 443`},
		{"no port", apiserverauth.User{Service: service("shop", "hooks", 70000), Token: "t"}, "and 70000"},
		{"plain HTTP", apiserverauth.User{URL: "http://example.com", Token: "t"}, `URL is "http://example.com": want https://host[:port]`},
		{"a password in a URL", apiserverauth.User{URL: "https://a:b@example.com", Token: "t"}, "want https://host[:port]"},
		{"a URL as host", apiserverauth.User{Host: "https://example.com", Token: "t"}, `Host is "https://example.com": want`},
		{"capitals", apiserverauth.User{Host: "Hooks.shop.svc", Token: "t"}, "in lower case"},
		{"a port by name", apiserverauth.User{Host: "hooks.shop.svc:https", Token: "t"}, "the port is not a number"},
		{"a zero before a port", apiserverauth.User{Host: "hooks.shop.svc:0443", Token: "t"}, "the port is not a number"},
		{"all hosts", apiserverauth.User{Host: "*", Token: "t"}, `Host is "*": that would send the credentials to webhooks of others`},
		{"all services", apiserverauth.User{Host: "*.svc:443", Token: "t"}, "to webhooks of others"},
		{"a wildcard in the middle", apiserverauth.User{Host: "a.*.svc", Token: "t"}, "want host:port"},
		{"the API server", apiserverauth.User{Service: service("default", "kubernetes", 0), Token: "t"}, "is the API server itself"},
		{"no credentials", apiserverauth.User{Service: at}, "no credentials for hooks.shop.svc:443: set CertFile and KeyFile"},
		{"a relative certificate", apiserverauth.User{Service: at, CertFile: "c", KeyFile: "/k"}, `CertFile for hooks.shop.svc:443 is "c": want an absolute path`},
		{"a relative key", apiserverauth.User{Service: at, CertFile: "/c", KeyFile: "k"}, `KeyFile for`},
		{"a relative token", apiserverauth.User{Service: at, TokenFile: "./t"}, `TokenFile for`},
		{"no key", apiserverauth.User{Service: at, CertFile: "/c"}, "CertFile and KeyFile for hooks.shop.svc:443: set both or neither"},
		{"no certificate", apiserverauth.User{Service: at, KeyFile: "/k", Token: "t"}, "set both or neither"},
		{"two tokens", apiserverauth.User{Service: at, TokenFile: "/t", Token: "t"}, "TokenFile and Token are both set for hooks.shop.svc:443: set only one"},
		{"token and password", apiserverauth.User{Service: at, TokenFile: "/t", Username: "a", Password: "b"}, "every call with both fails; set one"},
		{"a token with a line end", apiserverauth.User{Service: at, Token: "secret\n"}, "Token for hooks.shop.svc:443 is not a bearer token"},
		{"no password", apiserverauth.User{Service: at, Username: "a"}, "Username with Password for hooks.shop.svc:443 is not a user name with a password"},
		{"no user", apiserverauth.User{Service: at, Password: "secret"}, "is not a user name with a password"},
		{"a colon", apiserverauth.User{Service: at, Username: "a:b", Password: "secret"}, "has a colon in the user name"},
		{"a line end", apiserverauth.User{Service: at, Username: "a", Password: "secret\n"}, "has control characters"},
		{"not UTF-8", apiserverauth.User{Service: at, Username: "a", Password: "secret\xff"}, "is not UTF-8"},
	} {
		t.Run(in.reason, func(t *testing.T) {
			_, _, err := apiserverauth.Files(apiserverauth.Options{KubeconfigFile: "/k", Users: []apiserverauth.User{in.user}})
			if err == nil || !strings.Contains(err.Error(), in.want) || !strings.HasPrefix(err.Error(), "cannot write the files for the API server: ") {
				t.Errorf("\n got %v\nwant %s", err, in.want)
			} else if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has a secret in it: %v", err)
			}
		})
	}
	_, _, err := apiserverauth.Files(apiserverauth.Options{KubeconfigFile: "etc/k", Users: []apiserverauth.User{
		{Host: "a.shop.svc", Token: "t"}, {Service: service("shop", "a", 443), Token: "u"}, {},
	}})
	const want = `cannot write the files for the API server: KubeconfigFile is "etc/k": the API server needs an absolute path
Users[1]: a.shop.svc:443 has the credentials of Users[0] already
Users[2]: set one of Service, URL and Host`
	if err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	if _, _, err := apiserverauth.Files(apiserverauth.Options{KubeconfigFile: "/k"}); err == nil || !strings.Contains(err.Error(), "Users is empty") {
		t.Errorf("got %v", err)
	}
}

func TestFilesNameTheFoldersOfManifests(t *testing.T) {
	users := []apiserverauth.User{{Host: "a.shop.svc", Token: "t"}}
	const mutating, validating = "name: MutatingAdmissionWebhook", "name: ValidatingAdmissionWebhook"
	for _, in := range []struct {
		reason         string
		o              apiserverauth.Options
		want, unwanted []string
		wantErr        string
	}{
		{"with credentials", apiserverauth.Options{KubeconfigFile: "/k", Users: users, MutatingManifests: "/m"},
			[]string{mutating, validating, "kubeConfigFile: /k\n    staticManifestsDir: /m\n"}, nil, ""},
		{"one plugin is enough", apiserverauth.Options{ValidatingManifests: "/v"}, []string{validating, "staticManifestsDir: /v"}, []string{mutating, "kubeConfigFile"}, ""},
		{"a relative folder", apiserverauth.Options{MutatingManifests: "m"}, nil, nil, `MutatingManifests is "m": the API server needs an absolute path`},
		{"another relative folder", apiserverauth.Options{ValidatingManifests: "./v"}, nil, nil, `ValidatingManifests is "./v": the API server needs an absolute path`},
		{"one folder for both", apiserverauth.Options{MutatingManifests: "/m", ValidatingManifests: "/m/"}, nil, nil, "the API server rejects a folder that contains both kinds"},
		{"users without a kubeconfig", apiserverauth.Options{MutatingManifests: "/m", Users: users}, nil, nil, `KubeconfigFile is "": the API server needs`},
		{"a kubeconfig without users", apiserverauth.Options{MutatingManifests: "/m", KubeconfigFile: "/k"}, nil, nil, "Users is empty"},
	} {
		t.Run(in.reason, func(t *testing.T) {
			configuration, kubeconfig, err := apiserverauth.Files(in.o)
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
			for _, unwanted := range in.unwanted {
				if strings.Contains(string(configuration), unwanted) {
					t.Errorf("unexpected %q in\n%s", unwanted, configuration)
				}
			}
		})
	}
}
