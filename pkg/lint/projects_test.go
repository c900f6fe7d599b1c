// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// projects has the configurations of well-known projects, abbreviated, with their expected findings. Each finding was
// checked by hand: it is true for the configuration alone, whatever the program behind it does.
var projects = map[string][]string{
	// 30 seconds, for objects of its own only.
	"cert-manager": {"advice AK402 webhook.cert-manager.io", "advice AK402 webhook.cert-manager.io"},
	// Wildcards in cluster scope, which no namespaceSelector keeps out; everything else is left out by a label or
	// forgiven by Ignore. What guards the label itself fails closed, and is for Namespaces only.
	"gatekeeper": {"advice AK206 mutation.gatekeeper.sh", "advice AK206 validation.gatekeeper.sh", "advice AK307 mutation.gatekeeper.sh"},
	// Before policies are read it fails closed for everything, itself included.
	"kyverno": {
		"advice AK206 validate.kyverno.svc-ignore",
		"error AK201 validate.kyverno.svc-fail", "warning AK202 validate.kyverno.svc-fail", "warning AK203 validate.kyverno.svc-fail",
		"warning AK204 validate.kyverno.svc-fail", "warning AK205 validate.kyverno.svc-fail", "warning AK206 validate.kyverno.svc-fail",
		"warning AK207 validate.kyverno.svc-fail",
	},
	// Four webhooks of 10 seconds each, but no pod passes more than one.
	"istio": {
		"advice AK401 rev.namespace.sidecar-injector.istio.io", "advice AK401 rev.object.sidecar-injector.istio.io",
		"advice AK401 namespace.sidecar-injector.istio.io", "advice AK401 object.sidecar-injector.istio.io", "advice AK401 rev.validation.istio.io",
	},
	"linkerd": {"advice AK401 linkerd-sp-validator.linkerd.io"},
	// It fails closed, and its own pods have the label that keeps them out.
	"linkerd-ha": nil,
	// No rules before it starts; services and ingresses of its own group.
	"knative-serving": nil,
	"ingress-nginx":   {"advice AK210 validate.nginx.ingress.kubernetes.io", "advice AK401 validate.nginx.ingress.kubernetes.io"},
	"metallb":         {"advice AK401 addresspoolvalidationwebhook.metallb.io", "advice AK401 bgppeersvalidationwebhook.metallb.io"},
	"prometheus-operator": {
		"advice AK401 prometheusrulemutate.monitoring.coreos.com", "advice AK401 prometheusrulemutate.monitoring.coreos.com",
	},
	// All pods, in all namespaces, fail closed; and Deployments, its own among them.
	"kueue": {
		"advice AK401 mjob.kb.io",
		"error AK201 mpod.kb.io", "warning AK203 mpod.kb.io", "advice AK401 mpod.kb.io",
		"advice AK401 mclusterqueue.kb.io",
		"warning AK202 vdeployment.kb.io", "warning AK203 vdeployment.kb.io", "advice AK401 vdeployment.kb.io",
		"advice AK401 vworkload.kb.io",
	},
	"cloudnative-pg": {"advice AK401 mcluster.cnpg.io", "advice AK401 vcluster.cnpg.io", "advice AK401 vpooler.cnpg.io"},
	"opa-kube-mgmt":  {"advice AK206 webhook.openpolicyagent.org", "advice AK401 webhook.openpolicyagent.org"},
	// Each pod passes it, at each UPDATE, those of kube-system too.
	"vault-agent-injector": {"advice AK307 vault.hashicorp.com", "advice AK203 vault.hashicorp.com", "advice AK401 vault.hashicorp.com"},
	"vault-agent-injector-old": {
		"warning AK113 ", "warning AK305 vault.hashicorp.com", "advice AK307 vault.hashicorp.com", "warning AK309 vault.hashicorp.com",
		"advice AK203 vault.hashicorp.com",
	},
}

func TestProjects(t *testing.T) {
	files, err := filepath.Glob("testdata/projects/*.yaml")
	if err != nil || len(files) != len(projects) {
		t.Fatalf("%d files for %d projects: %v", len(files), len(projects), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range Run(Input{Objects: parse(t, string(text))}, Options{Now: clock}) {
				got = append(got, string(f.Severity)+" "+f.Rule+" "+f.Webhook)
			}
			want := slices.Clone(projects[name])
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestOurExamples checks that the manifests of this repository break no rule.
func TestOurExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/manifests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	configurations := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		configurations += strings.Count(string(text), "WebhookConfiguration\n")
		for _, f := range Run(Input{Objects: parse(t, string(text))}, Options{Now: clock}) {
			t.Errorf("%s: %s %s: %s", file, f.Rule, f.Path, f.Message)
		}
	}
	if configurations == 0 {
		t.Error("no configuration is among them")
	}
}
