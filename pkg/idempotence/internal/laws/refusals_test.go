// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"strings"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// givenContainers has samples with the containers of a Pod in a template.
type givenContainers struct{ Inputs }

func (givenContainers) GivenIn(p tree.Path) bool { return p.Last() == "containers" }

func TestOmitted(t *testing.T) {
	const missing = "spec.jobs[0].template.spec.containers: Required value"
	const result = `{"spec":{"jobs":[{"name":"a","template":{"spec":{"containers":null,"restartPolicy":"Never"}}}]}}`
	for name, tc := range map[string]struct {
		sent, problem string
		want          bool
	}{
		"a template without a Pod":            {`{"spec":{"jobs":[{"name":"a","template":{}}]}}`, missing, true},
		"an element that the webhook adds":    {`{"spec":{"jobs":[]}}`, missing, false},
		"a field that the webhook removes":    {`{"spec":{"jobs":[{"name":"a","template":{"spec":{"containers":[{"name":"c"}]}}}]}}`, missing, false},
		"an empty template":                   {`{"spec":{"jobs":[{"name":"a","template":{}}]}}`, "spec.jobs[0].template.spec.volumes: Required value", true},
		"a field that no sample has":          {`{"spec":{"jobs":[{"name":"a","template":{"spec":{"nodeName":"n"}}}]}}`, "spec.jobs[0].template.spec.volumes: Required value", false},
		"an empty map in an empty template":   {`{"spec":{"jobs":[{"name":"a","template":{}}]}}`, `spec.jobs[0].template.spec.containers: Invalid value: {}: spec.jobs[0].template.spec.containers in body should have at least 1 properties`, true},
		"a map that the webhook empties":      {`{"spec":{"jobs":[{"name":"a","template":{"spec":{"containers":{"c":1}}}}]}}`, `spec.jobs[0].template.spec.containers: Invalid value: {}: spec.jobs[0].template.spec.containers in body should have at least 1 properties`, false},
		"a value that the API server rejects": {`{"spec":{"jobs":[{"name":"a","template":{}}]}}`, `spec.jobs[0].template.spec.containers: Invalid value: "null"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			trial := &Trial{Options: Options{Inputs: givenContainers{}}}
			if got := trial.omitted(tc.problem, parsed(t, tc.sent), parsed(t, result)); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestIsOfUser(t *testing.T) {
	long := strings.Repeat("1", 64)
	result := `{"metadata":{"annotations":{"key":"-1"}},"spec":{"topologyKey":"-1","replicas":-1,"zone":"","nodeName":"n","version":"v` + long + `",
		"volumes":[{"name":"v","emptyDir":{},"configMap":{"name":"c"}}],
		"initContainers":[{"name":"a"},{"name":"b"},{"name":"b"}],"containers":[{"name":"a",
		"resources":{"limits":{"cpu":"1","memory":"0"},"requests":{"cpu":"2","memory":"64Mi"}}}]}}`
	const key, zone = `spec.topologyKey: Invalid value: "-1"`, `spec.zone: Required value`
	const memory = `spec.containers[0].resources.requests: Invalid value: "64Mi": must be less than or equal to memory limit of 0`
	const cpu = `spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`
	const version, init = `spec.version: Too long: may not be more than 64 bytes`, `spec.initContainers[0].name: Duplicate value: "a"`
	const volume = `spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type`
	const gate = `spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared`
	sent := func(note, limit string) string {
		return `{"metadata":{"annotations":{"key":"` + note + `"}},"spec":{"nodeName":"n","version":"` + long + `","initContainers":[{"name":"b"}],"containers":[{"name":"a","resources":{"limits":{"cpu":"1","memory":"` + limit + `"}}}]}}`
	}
	for name, tc := range map[string]struct {
		sent, problem string
		want          bool
	}{
		"a copied annotation":          {sent("-1", "0"), key, true},
		"another text":                 {sent("-2", "0"), key, false},
		"a copied empty annotation":    {sent("", "0"), zone, true},
		"a part of an annotation":      {sent("n-1,-1 x", "0"), key, true},
		"a part of a word":             {sent("n-1x", "0"), key, false},
		"an empty annotation":          {sent("", "0"), "spec.image: Required value", true},
		"no empty annotation":          {sent("x", "0"), "spec.image: Required value", false},
		"an empty text of the webhook": {sent("-1", "0"), zone, false},
		"a limit of 0":                 {sent("-1", "0"), memory, true},
		"a limit of the webhook":       {sent("-1", "1Gi"), memory, false},
		"a limit that is not 0":        {sent("-1", "0"), cpu, false},
		"a copied number":              {sent("-1", "0"), `.spec.replicas: Invalid value: -1: should be positive`, true},
		"a text at the limit":          {sent("-1", "0"), version, true},
		"a text of the webhook":        {`{"spec":{}}`, version, false},
		"a long text of the webhook":   {`{"spec":{"version":"1"}}`, version, false},
		"a name in the other list":     {sent("-1", "0"), init, true},
		"a name in the same list":      {sent("-1", "0"), `spec.initContainers[2].name: Duplicate value: "b"`, false},
		"a name of the webhook":        {`{"spec":{}}`, init, false},
		"a sidecar in the other list":  {`{"spec":{"initContainers":[{"name":"a","restartPolicy":"Always"}]}}`, init, true},
		"a volume of the user":         {`{"spec":{"volumes":[{"name":"v","configMap":{"name":"c"}}]}}`, volume, true},
		"a volume of the webhook":      {`{"spec":{}}`, volume, false},
		"a gate of a bound Pod":        {sent("-1", "0"), gate, true},
		"a node of the webhook":        {`{"spec":{}}`, gate, false},
		"a problem without any field":  {sent("-1", "0"), "the object: Invalid value", false},
	} {
		t.Run(name, func(t *testing.T) {
			trial := &Trial{Options: Options{Inputs: givenContainers{}}}
			if got := trial.isOfUser(tc.problem, parsed(t, tc.sent), parsed(t, result)); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
