// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Two installations have the same name: one program in two namespaces, or two programs. The second one must be rejected
// unless Force is set.
func TestOtherInstallationWithTheSameNameIsKept(t *testing.T) {
	at := func(namespace, service string) Options {
		o := options()
		o.Configuration.Service = &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service}
		return o
	}
	by := func(url, namespace string) Options {
		o := options()
		o.Configuration.Service, o.Configuration.URL, o.Configuration.Namespace = nil, url, namespace
		return o
	}
	url := func(namespace string) Options { return by("https://example.com/", namespace) }
	rows := []struct {
		why         string
		first, then Options
		want        string // the error of the second installation
		mayRemove   bool
	}{
		{"another namespace", at("shop", "hooks"), at("bank", "hooks"), "Service shop/hooks, but this program is for Service bank/hooks", false},
		{"another service", at("shop", "hooks"), at("shop", "policy"), "Service shop/hooks, but this program is for Service shop/policy", false},
		{"a URL elsewhere", url("shop"), url("bank"), "https://example.com, in namespace shop, but this program is for https://example.com, in namespace bank", false},
		{"the same", at("shop", "hooks"), at("shop", "hooks"), "", true},
		{"a developer's URL beside the cluster's Service", at("shop", "hooks"), url("shop"), "Service shop/hooks, but this program is for https://example.com, in namespace shop", true},
		{"a Service after the URL of a developer", url("shop"), at("shop", "hooks"), "https://example.com, in namespace shop, but this program is for Service shop/hooks", true},
		{"another URL", url("shop"), by("https://example.com:8443", "shop"), "https://example.com, in namespace shop, but this program is for https://example.com:8443, in namespace shop", true},
		{"the same URL", url("shop"), url("shop"), "", true},
	}
	for _, row := range rows {
		synctest.Test(t, func(t *testing.T) {
			first, c := newFake(t, row.first, denying("one.example.com"), labelling("one.example.com"))
			if err := first.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			then, _ := newFake(t, row.then, denying("two.example.com"))
			then.cluster = c
			judge := func(what string, err error, may bool) {
				if may && err != nil {
					t.Errorf("%s: %s: %v", row.why, what, err)
				} else if !may && (err == nil || !strings.HasPrefix(err.Error(), "MutatingWebhookConfiguration hooks was installed for "+row.want+": choose another Configuration.Name, or set Force")) {
					t.Errorf("%s: %s: %v", row.why, what, err)
				}
			}
			judge("Apply", then.Apply(t.Context()), row.want == "")
			judge("Promote", then.Promote(t.Context()), row.want == "")
			if row.want != "" && (c.policies() != "one Fail" || c.stored[mutating] == nil) {
				t.Errorf("%s: %s", row.why, c.policies())
			}
			then.o.Force = true
			if err := then.Apply(t.Context()); err != nil || c.policies() != "two Fail" || c.stored[mutating] != nil {
				t.Errorf("%s, by force: %v, %s", row.why, err, c.policies())
			}
			then.o.Force = false
			judge("Apply after force", then.Apply(t.Context()), true)

			if err := then.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := first.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			judge("Remove", then.Remove(t.Context()), row.mayRemove)
			if gone := len(c.stored) == 0; gone != row.mayRemove {
				t.Errorf("%s: removed: %v", row.why, gone)
			}
		})
	}
}
