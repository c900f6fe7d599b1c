// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/idempotence"
)

func (c hookCase) options(t *testing.T) idempotence.Options {
	t.Helper()
	var options idempotence.Options
	for _, text := range c.CRDs {
		crd := new(apiextensionsv1.CustomResourceDefinition)
		if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
			t.Fatal(err)
		}
		options.CRDs = append(options.CRDs, crd)
	}
	for _, text := range c.Samples {
		u := new(unstructured.Unstructured)
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if !clientgoscheme.Scheme.Recognizes(u.GroupVersionKind()) {
			options.Samples = append(options.Samples, u)
			continue
		}
		typed, err := clientgoscheme.Scheme.New(u.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict([]byte(text), typed); err != nil {
			t.Fatal(err)
		}
		options.Samples = append(options.Samples, typed)
	}
	return options
}

// A named is a broken webhook that violates no law except L9. The report names the fault in another finding.
type named struct {
	why  string // why the fault is no violation
	text string // part of the finding
}

var misjudged = map[string]named{
	"F07b2-empty-list-is-dropped": {
		"an empty list means the same as none in most custom resources. Lost unknown fields (L9) have the same cause", "unknown fields"},
	"F08b1-token-default-is-spelled-out": {
		"a webhook may set a default once, and keep it", "keeps it when the user sets spec.template.metadata.annotations[identity.northwind.io/token] later"},
	"F09b1-sign-in-at-create-only": {
		"annotations that a webhook sets on CREATE only may be a record of the creation", "its rules do not include UPDATE"},
	"T05b1-mirror-prefix": {
		"the webhook cannot know the registries of other parties", "change the object in turns forever"},
	"T06b1-telemetry-name-if-absent": {
		"the author of a copy may want to keep the value", "writes the name of a container into"},
}

// dropsUnknownFields lists correct webhooks that decode the object into Go types of k8s.io/api and encode it again, so
// that fields which these types lack are lost. The harness must report that (L9), and nothing else.
var dropsUnknownFields = []string{
	"Z02c1-java-agent-fields", "Z03c1-tmp-volume-hashed", "Z04c1-cost-centre-from-old-object", "Z05c3-network-policy-dns",
	"Z07c3-hpa-slow-down", "Z10c1-salt-kept",
	"T03c2-exporter-free-port", "T07c2-node-pool-in-each-term", "T08c1-batch-pool-pointers",
}

// TestHarness runs the harness on each webhook. Broken webhooks must violate a law other than L9. Correct ones must
// violate no law, except that those in dropsUnknownFields violate L9.
func TestHarness(t *testing.T) {
	for i, c := range cases {
		if os.Getenv("ADMITKIT_CASES") != "all" && i%3 > 0 {
			continue // make nightly runs all
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			report, err := idempotence.Run(t.Context(), idempotence.Handler(c.Webhook, c.New), c.options(t))
			if err != nil {
				t.Fatal(err)
			}
			violated := map[idempotence.Law]bool{}
			for _, v := range report.Findings {
				if v.Verdict != idempotence.Advice {
					violated[v.Law] = true
				}
			}
			drops := violated[idempotence.L9]
			delete(violated, idempotence.L9)
			other, listed := misjudged[c.Name]
			if found := len(violated) > 0; found != c.broken() && !listed {
				t.Errorf("%s\n%s\n%s", c.Summary, c.Why, textOf(t, report))
			} else if found == c.broken() && listed {
				t.Error("the harness judges the webhook correctly now: remove it from misjudged")
			}
			if text := strings.Join(strings.Fields(textOf(t, report)), " "); !strings.Contains(text, other.text) {
				t.Errorf("no finding has %q:\n%s", other.text, textOf(t, report))
			}
			if !c.broken() && drops != slices.Contains(dropsUnknownFields, c.Name) {
				t.Errorf("the harness reports lost unknown fields: %v, want %v\n%s", drops, !drops, textOf(t, report))
			}
			if len(report.Incomplete) > 0 {
				t.Errorf("the run is inconclusive:\n%s", textOf(t, report))
			}
		})
	}
}

func textOf(t *testing.T, report *idempotence.Report) string {
	t.Helper()
	var text bytes.Buffer
	if err := report.WriteText(&text, false); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
