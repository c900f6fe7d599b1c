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

// projects lists the expected findings for abbreviated configurations of well-known projects. Each finding was
// checked by hand: it is true for the configuration, whatever the program does.
var projects = map[string][]string{
	// The timeout is 30 seconds, but the webhooks match only cert-manager's own objects.
	"cert-manager": {"advice AK402 webhook.cert-manager.io", "advice AK402 webhook.cert-manager.io"},
	// The wildcards match cluster-scoped objects, which no namespaceSelector excludes. Other objects are excluded by a
	// label, or failurePolicy is Ignore. The webhook that guards the label has failurePolicy Fail, but matches only
	// Namespaces.
	"gatekeeper": {"advice AK206 mutation.gatekeeper.sh", "advice AK206 validation.gatekeeper.sh", "advice AK307 mutation.gatekeeper.sh"},
	// Until Kyverno has read the policies, failurePolicy Fail applies to all objects, including its own.
	"kyverno": {
		"advice AK206 validate.kyverno.svc-ignore",
		"error AK201 validate.kyverno.svc-fail", "warning AK202 validate.kyverno.svc-fail", "warning AK203 validate.kyverno.svc-fail",
		"warning AK204 validate.kyverno.svc-fail", "warning AK205 validate.kyverno.svc-fail", "warning AK206 validate.kyverno.svc-fail",
		"warning AK207 validate.kyverno.svc-fail",
	},
	// There are four mutating webhooks with a timeout of 10 seconds each, but each Pod matches at most one.
	"istio": {
		"advice AK401 rev.namespace.sidecar-injector.istio.io", "advice AK401 rev.object.sidecar-injector.istio.io",
		"advice AK401 namespace.sidecar-injector.istio.io", "advice AK401 object.sidecar-injector.istio.io", "advice AK401 rev.validation.istio.io",
	},
	"linkerd": {"advice AK401 linkerd-sp-validator.linkerd.io"},
	// failurePolicy is Fail, but Linkerd's own Pods have the label that excludes them.
	"linkerd-ha": nil,
	// The configuration has no rules until Knative starts. The services and ingresses belong to Knative's own API group.
	"knative-serving": nil,
	"ingress-nginx":   {"advice AK210 validate.nginx.ingress.kubernetes.io", "advice AK401 validate.nginx.ingress.kubernetes.io"},
	"metallb":         {"advice AK401 addresspoolvalidationwebhook.metallb.io", "advice AK401 bgppeersvalidationwebhook.metallb.io"},
	"prometheus-operator": {
		"advice AK401 prometheusrulemutate.monitoring.coreos.com", "advice AK401 prometheusrulemutate.monitoring.coreos.com",
	},
	// With failurePolicy Fail, the webhooks match all Pods in all namespaces, and Deployments, including Kueue's own.
	"kueue": {
		"advice AK401 mjob.kb.io",
		"error AK201 mpod.kb.io", "warning AK203 mpod.kb.io", "advice AK401 mpod.kb.io",
		"advice AK401 mclusterqueue.kb.io",
		"warning AK202 vdeployment.kb.io", "warning AK203 vdeployment.kb.io", "advice AK401 vdeployment.kb.io",
		"advice AK401 vworkload.kb.io",
	},
	"cloudnative-pg": {"advice AK401 mcluster.cnpg.io", "advice AK401 vcluster.cnpg.io", "advice AK401 vpooler.cnpg.io"},
	"opa-kube-mgmt":  {"advice AK206 webhook.openpolicyagent.org", "advice AK401 webhook.openpolicyagent.org"},
	// The webhook is called for each UPDATE of a Pod, even in kube-system.
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

// TestOurExamples checks that the manifests of the examples break no rule. The gallery suppresses two findings with a
// reason, and has a test of its own.
func TestOurExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/manifests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	configurations := 0
	for _, file := range files {
		if strings.Contains(file, "/gallery/") {
			continue
		}
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
