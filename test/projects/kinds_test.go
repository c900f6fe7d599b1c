// SPDX-License-Identifier: Apache-2.0

package projects

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/cli/scaffold"
)

// TestKindsOfInitAreServed checks that the API server serves each built-in kind with the name and scope that
// init uses, and accepts its sample.
func TestKindsOfInitAreServed(t *testing.T) {
	served, err := kubectl(t, ".", "api-resources", "--no-headers")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range scaffold.Kinds() {
		t.Run(k.String(), func(t *testing.T) {
			line := fmt.Sprintf("%s %s %t %s", k.Resource, k.GroupVersion(), k.Namespaced(), k.Kind)
			found := k.Resource == "horizontalpodautoscalers" || k.Kind == "Event" // the list has one version of each, and Events once
			for _, s := range strings.Split(served, "\n") {
				if words := strings.Fields(s); len(words) > 3 && words[0]+" "+strings.Join(words[len(words)-3:], " ") == line {
					found = true
				}
			}
			if !found {
				t.Errorf("the API server does not serve %s", line)
			}
			cmd := cluster.Kubectl(t.Context(), kubeconfig, "create", "--dry-run=server", "--validate=strict", "-f", "-")
			cmd.Stdin = strings.NewReader(k.Sample)
			if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("Warning: unknown")) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
