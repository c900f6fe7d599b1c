// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/doctor.md")
	must(t, err)
	return string(text)
}

// TestGuideShowsTheTable compares the table of calls in the guide with the table that a report prints.
func TestGuideShowsTheTable(t *testing.T) {
	report := &Report{Traffic: &Traffic{Servers: 3, Known: 3, Since: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), Writes: 129610, Calls: []Row{
		{Webhook: "team.example.com", Calls: 40178, Share: 0.31, Seconds99: 0.025},
		{Webhook: "images.example.com", Calls: 12007, Share: 0.0926, Seconds99: 0.5, Denied: 112, Failed: 3},
		{Object: "CustomResourceDefinition/widgets.example.com", Calls: 310, Seconds99: 0.005},
	}}}
	var text strings.Builder
	must(t, report.Write("text", &text, screen.Painter{}))
	table, _, _ := strings.Cut(text.String(), "\n\n")
	if !strings.Contains(guide(t), "\n...\n"+table+"\n...\n") {
		t.Errorf("docs/doctor.md does not show\n%s", table)
	}
}

// TestGuideHasThePermissions compares the permissions of the guide with those that suffice in TestRights.
func TestGuideHasThePermissions(t *testing.T) {
	_, rest, _ := strings.Cut(guide(t), "<!-- checked internal/cli/doctor/guide_test.go TestGuideHasThePermissions -->\n```yaml\n")
	block, _, _ := strings.Cut(rest, "```")
	var role rbacv1.ClusterRole
	must(t, yaml.UnmarshalStrict([]byte(block), &role))
	got, want := permissions(role.Rules), permissions(readAll())
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("the guide grants\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// permissions returns one line for each verb and resource, sorted.
func permissions(rules []rbacv1.PolicyRule) (all []string) {
	for _, r := range rules {
		for _, verb := range r.Verbs {
			for _, url := range r.NonResourceURLs {
				all = append(all, verb+" "+url)
			}
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					all = append(all, verb+" "+resource+"."+group)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}
