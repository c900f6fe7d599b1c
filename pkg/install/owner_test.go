// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Two releases of one program in two namespaces, or of two programs, have one name.
func TestAnotherInstallationOfTheSameNameIsLeftAlone(t *testing.T) {
	at := func(namespace, service string) Options {
		o := options()
		o.Configuration.Service = &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service}
		return o
	}
	url := func(namespace string) Options {
		o := options()
		o.Configuration.Service, o.Configuration.URL, o.Configuration.Namespace = nil, "https://example.com", namespace
		return o
	}
	rows := []struct {
		why         string
		first, then Options
		want        string
	}{
		{"another namespace", at("shop", "hooks"), at("bank", "hooks"), "was installed by shop/hooks, and this is bank/hooks"},
		{"another service", at("shop", "hooks"), at("shop", "policy"), "was installed by shop/hooks, and this is shop/policy"},
		{"a URL elsewhere", url("shop"), url("bank"), "was installed by shop, and this is bank"},
		{"the same", at("shop", "hooks"), at("shop", "hooks"), ""},
		{"a URL, for the time being", at("shop", "hooks"), url("shop"), ""},
		{"no URL any more", url("shop"), at("shop", "hooks"), ""},
		{"the same URL", url("shop"), url("shop"), ""},
	}
	for _, row := range rows {
		synctest.Test(t, func(t *testing.T) {
			first, c := newFake(t, row.first, denying("one.example.com"), labelling("one.example.com"))
			if err := first.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			then, _ := newFake(t, row.then, denying("two.example.com"))
			then.cluster = c
			for what, err := range map[string]error{"Apply": then.Apply(t.Context()), "Promote": then.Promote(t.Context()), "Remove": then.Remove(t.Context())} {
				if row.want == "" {
					if err != nil {
						t.Errorf("%s: %s: %v", row.why, what, err)
					}
				} else if err == nil || !strings.HasPrefix(err.Error(), "MutatingWebhookConfiguration hooks "+row.want+": choose another Name of the configuration options, or set Force") {
					t.Errorf("%s: %s: %v", row.why, what, err)
				}
			}
			if row.want == "" {
				return
			}
			if c.policies() != "one Fail" {
				t.Errorf("%s: %s", row.why, c.policies())
			}
			then.o.Force = true
			if err := then.Apply(t.Context()); err != nil || c.policies() != "two Fail" || c.stored[mutating] != nil {
				t.Errorf("%s, by force: %v, %s", row.why, err, c.policies())
			}
		})
	}
}
