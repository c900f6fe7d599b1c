// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/doctor"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// A fault breaks one thing in a healthy world.
type fault struct {
	name string
	// before changes the objects before they are created, and after breaks the running world.
	before func(*world)
	after  func(*testing.T, *world)
	// want is the check and the subject of the only finding. SERVICE and CONFIGURATION stand for those of the world.
	want string
}

// parts are the faults by what they break.
var parts = map[string][]fault{
	"place": placeFaults, "network": networkFaults, "served": servedFaults, "bundle": bundleFaults, "rules": ruleFaults, "cross": crossFaults,
	"pods": podFaults, "others": otherFaults, "traffic": trafficFaults,
}

// TestFaults breaks one thing at a time. The report must have this finding and no other.
func TestFaults(t *testing.T) {
	r := newRig(t)
	t.Run("healthy", func(t *testing.T) {
		w := r.world(t)
		apply(definitionYAML)(t, w)
		apply(apiServiceYAML)(t, w)
		w.awaitAvailable(t, "True")
		report := r.doctor(t)
		if got := found(report); len(got) > 0 || len(report.NotChecked) > 0 {
			t.Errorf("found %q in a healthy cluster, and could not check %v", got, report.NotChecked)
		}
	})
	count := 0
	for part, faults := range parts {
		for _, f := range faults {
			count++
			t.Run(part+": "+f.name, func(t *testing.T) { r.check(t, f) })
		}
	}
	if count < 50 {
		t.Errorf("there are only %d faults", count)
	}
}

// TestEveryCheckIsProven requires that a fault, or another test of this package, makes each check report something. These
// tests fail if the check is removed.
func TestEveryCheckIsProven(t *testing.T) {
	proven := map[string]bool{"network-policy": true, "call-fails": true, "undo-each-other": true} // TestRights, TestProbe and TestFights
	for _, faults := range parts {
		for _, f := range faults {
			check, _, _ := strings.Cut(f.want, " ")
			proven[check] = true
		}
	}
	for _, c := range doctor.Checks() {
		if !proven[c.ID] {
			t.Errorf("no fault makes %s report something", c.ID)
		}
		delete(proven, c.ID)
	}
	for id := range proven {
		t.Errorf("a fault wants %s, which is no check", id)
	}
}

// independent lists parts whose faults do not hide each other.
var independent = [][2]string{
	{"place", "rules"}, {"place", "bundle"}, {"network", "rules"}, {"served", "rules"}, {"served", "pods"}, {"bundle", "rules"}, {"bundle", "pods"},
	{"rules", "pods"}, {"others", "rules"}, {"others", "pods"}, {"traffic", "pods"}, {"cross", "pods"},
}

// TestPairs breaks two things at a time. The report must have both findings and no other.
func TestPairs(t *testing.T) {
	r := newRig(t)
	count := 0
	for _, pair := range independent {
		first, second := parts[pair[0]], parts[pair[1]]
		for i := range max(len(first), len(second)) {
			a, b := first[i%len(first)], second[i%len(second)]
			if slices.Contains(excluded, [2]string{a.name, b.name}) {
				continue
			}
			count++
			t.Run(a.name+", and "+b.name, func(t *testing.T) { r.check(t, a, b) })
		}
	}
	if count < 60 {
		t.Errorf("there are only %d pairs", count)
	}
}

// excluded lists pairs of which one hides or changes the other.
var excluded = [][2]string{
	{"the namespace does not exist", "called for kube-system"}, // the selector does not exclude the other namespace
	{"one of two Pods has a certificate of another CA", "one replica"},
	{"the webhook fails and is ignored", "one of two Pods is ready"}, // the check is only for failurePolicy Fail
}

// check injects faults and compares the report.
func (r *rig) check(t *testing.T, faults ...fault) {
	t.Helper()
	var before []func(*world)
	for _, f := range faults {
		if f.before != nil {
			before = append(before, f.before)
		}
	}
	w := r.world(t, before...)
	var want []string
	for _, f := range faults {
		if f.after != nil {
			f.after(t, w)
		}
		want = append(want, w.names(f.want))
	}
	slices.Sort(want)
	if got := found(r.doctor(t)); !slices.Equal(got, want) {
		t.Errorf("found %q, want only %q", got, want)
	}
}

func (w *world) names(want string) string {
	return strings.NewReplacer("NAME", w.namespace, "SERVICE", "Service "+w.namespace+"/hook", "CONFIGURATION", "ValidatingWebhookConfiguration/"+w.namespace).Replace(want)
}

func (w *world) each(change func(*servedWebhook)) {
	for _, s := range w.servers {
		change(s)
	}
}

func (w *world) host() string { return "hook." + w.namespace + ".svc" }

// certificate makes all servers present another certificate.
func (w *world) certificate(host string, change ...func(*x509.Certificate)) {
	w.each(func(s *servedWebhook) { s.certificate = w.ca.serving(w.t, host, change...) })
}

func (w *world) url(text string) {
	client := &w.validating.Webhooks[0].ClientConfig
	client.Service, client.URL = nil, &text
}

// rules sets the rules and the excluded namespaces of the webhook.
func (w *world) rules(operation admissionregistrationv1.OperationType, group, resource string, excluded ...string) {
	w.validating.Webhooks[0].Rules, w.validating.Webhooks[0].NamespaceSelector = rules(operation, group, resource), except(excluded...)
}
