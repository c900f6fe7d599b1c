// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

// A coverage measures how well the requests test a controller.
type coverage struct {
	percent                   int // share of the results in process that the original changed, denied or failed
	acted                     int // answers of API servers that depend on the controller
	creates, updates, deletes int // requests to API servers about which the controller decided
}

// least lists the least coverage for each controller. It is about two thirds of what the default flags reach.
var least = map[string]coverage{
	"AlwaysPullImages":                     {34, 37, 45, 27, 3},
	"DefaultTolerationSeconds":             {50, 60, 45, 27, 3},
	"LimitPodHardAntiAffinityTopology":     {5, 6, 45, 27, 3},
	"PodNodeSelector":                      {18, 44, 52, 27, 3},
	"PodTolerationRestriction":             {24, 73, 56, 32, 3},
	"DefaultStorageClass":                  {3, 4, 48, 31, 3},
	"PersistentVolumeClaimResize":          {4, 4, 48, 31, 3},
	"StorageObjectInUseProtection":         {22, 21, 31, 18, 2},
	"DefaultIngressClass":                  {9, 36, 62, 11, 0},
	"DenyServiceExternalIPs":               {30, 36, 40, 34, 6},
	"RuntimeClass":                         {22, 36, 51, 6, 4},
	"Priority":                             {18, 56, 54, 19, 2},
	"NamespaceExists":                      {15, 18, 46, 30, 18},
	"NamespaceLifecycle":                   {22, 37, 8, 4, 86},
	"OwnerReferencesPermissionEnforcement": {30, 33, 26, 52, 4},
	"EventRateLimit":                       {10, 15, 74, 22, 3},
	"ImagePolicyWebhook":                   {15, 70, 34, 42, 4},
	"PodSecurity":                          {15, 49, 39, 30, 2},
	"LimitRanger":                          {17, 38, 52, 23, 4},
	"ServiceAccount":                       {22, 70, 65, 24, 1},
	"NodeRestriction":                      {34, 65, 48, 33, 6},
}

// A serverTally counts the answers of API servers to the requests for one controller.
type serverTally struct {
	total, equal int
	// acted counts the answers that depend on the controller, and decided also those to requests that it admitted.
	acted, decided map[admission.Operation]int
	differences    map[string]int // by name
}

func newServerTally() *serverTally {
	return &serverTally{acted: map[admission.Operation]int{}, decided: map[admission.Operation]int{}, differences: map[string]int{}}
}

// add counts an answer of the API server with the original. The argument without is the answer of the API
// server without the controller.
func (s *serverTally) add(original, without answer) {
	s.total++
	operation, acted := original.sent.operation, original.text() != without.text()
	if acted {
		s.acted[operation]++
	}
	if acted || original.verdict == allowed {
		s.decided[operation]++
	}
}

// summarize logs the counts. It fails if a declared difference never occurred, or if the requests cover too little.
func (s *serverTally) summarize(t *testing.T, c *controller, p pass) {
	t.Helper()
	for _, d := range c.onServer {
		rowOf(c).declared = append(rowOf(c).declared, d.name+" (on API servers)")
		if s.differences[d.name] == 0 {
			t.Errorf("the difference %q is declared for API servers, but never occurred: remove it", d.name)
		}
	}
	rowOf(c).onServers = fmt.Sprintf("%d/%d", s.equal, s.total)
	t.Logf("%s: %d/%d answers of API servers equal; declared differences: %v; the controller decided about %v of the requests; the answers to %v depend on it",
		c.name, s.equal, s.total, s.differences, s.decided, s.acted)
	want := least[c.name]
	acted := 0
	for _, n := range s.acted {
		acted += n
	}
	if want.acted == 0 || acted < want.acted {
		t.Errorf("the requests cover too little: only %d of %d answers depend on the controller, want %d", acted, s.total, want.acted)
	}
	minimum := map[admission.Operation]int{admission.Create: want.creates, admission.Update: want.updates, admission.Delete: want.deletes}
	for operation := range p.generated {
		if n := minimum[operation]; n == 0 || s.decided[operation] < n {
			t.Errorf("the controller decided only about %d requests with the operation %s, want %d", s.decided[operation], operation, n)
		}
	}
}

// checkActed fails if the original acted on too few requests in process.
func (c *tally) checkActed(t *testing.T, of *controller) {
	t.Helper()
	want := least[of.name].percent
	if acted := c.changed + c.denied + c.failed; want == 0 || acted*100 < want*c.total {
		t.Errorf("the requests cover too little: the original changed, denied or failed only %d of %d, want %d %%", acted, c.total, want)
	}
}
