// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The Pods that the probes send, as JSON.
const (
	plain     = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"},"spec":{"containers":[{"name":"app","image":"app:v1"}]}}`
	rich      = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","annotations":{"team":"shop"},"labels":{}},"spec":{"futureField":{"a":1},"dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler","initContainers":[{"name":"prepare","image":"prepare:v1","futureField":1}],"containers":[{"name":"app","image":"app:v1","command":["serve"],"env":[{"name":"LEVEL","value":"info"},{"name":"LEVEL","value":"debug"}],"ports":[{"containerPort":53,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}],"resources":{"limits":{"memory":"1.5Gi"},"requests":{"cpu":"2"}},"readinessProbe":{"httpGet":{"port":8080}},"volumeMounts":[{"name":"data","mountPath":"/var/data"}]},{"name":"app-two","image":"two:v1","futureField":2}],"volumes":[{"name":"data","emptyDir":{}}],"tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"},{"key":"gpu","operator":"Exists","effect":"NoExecute"}]}}`
	generated = `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-"},"spec":{"containers":[{"name":"app","image":"app:v1"}]}}`
	taken     = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"app","image":"app:v1","volumeMounts":[{"name":"data","mountPath":"/data"}]}],"volumes":[{"name":"data","emptyDir":{}}]}}`
	ownAgent  = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"app","image":"app:v1"},{"name":"agent","image":"mine:v1","securityContext":{"runAsUser":1000}}]}}`
	initAgent = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"initContainers":[{"name":"agent","image":"mine:v1"}],"containers":[{"name":"app","image":"app:v1"}]}}`
	legacies  = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"app","image":"app:v1"}],"volumes":[{"name":"legacy-a","emptyDir":{}},{"name":"legacy-b","emptyDir":{}},{"name":"keep","emptyDir":{}}%s]}}`
)

// A probe calls the webhook of a case and returns an error if it has a certain fault.
type probe func(c Case) error

// probes maps the number of a pattern to its probes. At least one fails for each broken webhook.
var probes = map[string][]probe{
	"P01": {again}, "P02": {again}, "P03": {again}, "P04": {again}, "P06": {again}, "P07": {again}, "P08": {again}, "P09": {again},
	"P05": {again, freshly},
	"P10": {addedLater},
	"P11": {on(taken, valid)},
	"P12": {on(ownAgent, callTwice)},
	"P13": {keeps}, "P14": {keeps}, "P16": {keeps}, "P24": {keeps},
	"P15": {on(plain, callOnce), on(rich, callOnce)},
	"P17": {freshly},
	"P18": {immutable, deletion},
	"P19": {dryRun, dryRunAnswer, dryRunLeaves},
	"P20": {bothVersions, versionsInTurn},
	"P21": {alternating},
	"P22": {again, freshly},
	"P23": {again},
	"P25": {on(fmt.Sprintf(legacies, ""), keep), on(fmt.Sprintf(legacies, `,{"name":"other","emptyDir":{}}`), keep)},
	"P26": {on(generated, valid), namespaceFilled},
}

func number(c Case) string {
	n, _, _ := strings.Cut(c.Name, " ")
	return n
}

func TestPatternsFailTheirProbes(t *testing.T) {
	for _, c := range Patterns() {
		if number(c)[0] != 'P' {
			continue // only the harness shows the fault, with API server defaults, edits or rivals
		}
		t.Run(c.Name, func(t *testing.T) {
			if len(c.Laws) == 0 {
				t.Error("the case names no law")
			}
			for _, p := range probes[number(c)] {
				if err := p(c); err != nil {
					t.Log(err)
					return
				}
			}
			t.Error("all probes pass")
		})
	}
}

func TestLookalikesPassEveryProbe(t *testing.T) {
	for _, c := range Lookalikes() {
		if number(c)[0] == 'V' {
			continue // the probes cannot distinguish it from a broken webhook, but the harness can
		}
		t.Run(c.Name, func(t *testing.T) {
			if len(c.Laws) > 0 {
				t.Errorf("a correct case names the laws %v", c.Laws)
			}
			if number(c)[0] == 'P' && probes[number(c)] == nil {
				t.Fatal("the pattern has no probes")
			}
			for _, p := range append([]probe{again, addedLater, keeps, freshly, bothVersions, alternating}, probes[number(c)]...) {
				if err := p(c); err != nil && !excused(c, err) {
					t.Error(err)
				}
			}
		})
	}
}

// excused reports whether the case permits the error. This is so for a difference, if the case has exceptions or
// permits advice.
func excused(c Case, err error) bool {
	var d difference
	return errors.As(err, &d) && (len(c.Exceptions) > 0 || c.Advice)
}

// A difference is an error that describes two objects which should be equal.
type difference string

func (d difference) Error() string { return string(d) }

func TestEveryPatternNumberHasACase(t *testing.T) {
	have := map[string]bool{}
	names := map[string]bool{}
	for _, c := range append(Patterns(), Lookalikes()...) {
		have[fmt.Sprint(number(c), len(c.Laws) > 0)] = true
		if names[c.Name] || names[c.Webhook.Name] {
			t.Errorf("two cases have the name of %s", c.Name)
		}
		names[c.Name], names[c.Webhook.Name] = true, true
	}
	for i := 1; i <= 26; i++ {
		for _, broken := range []bool{true, false} {
			if key := fmt.Sprintf("P%02d%v", i, broken); !have[key] {
				t.Error("missing:", key)
			}
		}
	}
	for i := 1; i <= 12; i++ {
		if key := fmt.Sprintf("N%dfalse", i); !have[key] {
			t.Error("missing:", key)
		}
	}
}

// inputs returns objects of the kind that the webhook handles.
func inputs(c Case) []object {
	switch c.Webhook.Rules[0].Resources[0] {
	case "widgets":
		bare := clone(sampleWidget().Object)
		delete(bare["metadata"].(object), "annotations")
		return []object{clone(sampleWidget().Object), bare}
	case "deployments":
		return []object{deployment(plain), deployment(rich)}
	}
	list := []object{parse(plain), parse(rich), parse(generated)}
	if number(c) != "seed" { // random handlers use other names for their parts
		list = append(list, parse(taken), parse(ownAgent), parse(initAgent))
	}
	for _, s := range c.Samples {
		list = append(list, parse(text(s)))
	}
	return list
}

func deployment(pod string) object {
	p := parse(pod)
	p["metadata"].(object)["labels"] = object{"app": "web"}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web"},
		"spec": object{"selector": object{"matchLabels": object{"app": "web"}}, "template": object{"metadata": p["metadata"], "spec": p["spec"]}},
	}
}

// each calls p for every input until p returns an error.
func each(c Case, p func(c Case, doc object) error) error {
	for _, doc := range inputs(c) {
		if err := p(c, doc); err != nil {
			return fmt.Errorf("%w\nobject %s", err, text(doc))
		}
	}
	return nil
}

func on(doc string, p func(c Case, doc object) error) probe {
	return func(c Case) error { return p(c, parse(doc)) }
}

func again(c Case) error { return each(c, callTwice) }

func callTwice(c Case, doc object) error { return twice(c.New(), doc) }

func callOnce(c Case, doc object) error {
	_, err := created(c.New(), doc)
	return err
}

func valid(c Case, doc object) error {
	r, err := do(c.New(), call{object: doc})
	if err != nil || !r.allowed {
		return err
	}
	return invalid(r.object)
}

// freshly sends the same call to 100 new instances, which must return the same object. If the result depends on the
// iteration order of a map with four entries, two of them differ: Go yields one of its orders with probability 5/8, so
// that 20 instances are too few.
func freshly(c Case) error {
	doc := inputs(c)[0]
	want, err := do(c.New(), call{object: doc})
	if err != nil {
		return err
	}
	for range 100 {
		got, err := do(c.New(), call{object: doc})
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(got.object, want.object) {
			return difference(fmt.Sprintf("one instance returns %s, another one %s", text(want.object), text(got.object)))
		}
	}
	return nil
}

// addedLater checks law L4b: the result must not depend on whether a container or step was added before or after the
// first call. It adds a new one, once at the front of the list and once at the end.
func addedLater(c Case) error {
	return each(c, func(c Case, doc object) error {
		for _, front := range []bool{false, true} {
			add := func(doc object) object { return withNewContainer(doc, front) }
			h := c.New()
			late, err := created(h, doc)
			if errors.Is(err, errDenied) {
				continue
			}
			if err == nil {
				late, err = created(h, add(late))
			}
			early, err2 := created(h, add(doc))
			if err2 == nil {
				early, err2 = created(h, early)
			}
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			if !same(late, early) {
				return difference(fmt.Sprintf("added later %s\nadded before %s", text(late), text(early)))
			}
		}
		return nil
	})
}

func withNewContainer(doc object, front bool) object {
	doc = clone(doc)
	spec, list := podOf(doc)["spec"].(object), "containers"
	if doc["kind"] == "Widget" {
		spec, list = doc["spec"].(object), "steps"
	}
	elements, _ := spec[list].([]any)
	at := len(elements)
	if front {
		at = 0
	}
	spec[list] = slices.Insert(elements, at, any(object{"name": "added", "image": "added:v1", "readinessProbe": object{"httpGet": object{"port": 80}}}))
	return doc
}

// keeps checks that one call removes nothing that the object had.
func keeps(c Case) error { return each(c, keep) }

func keep(c Case, doc object) error {
	after, err := created(c.New(), doc)
	if errors.Is(err, errDenied) {
		return nil
	}
	if err != nil {
		return err
	}
	if gone := lost(withoutLegacy(doc), withoutLegacy(after), ""); gone != "" {
		return fmt.Errorf("the call removes %s: %s", gone, text(after))
	}
	if number(c) == "P25" && text(withoutLegacy(after)) != text(after) {
		return fmt.Errorf("a legacy volume is left: %s", text(after))
	}
	return nil
}

// withoutLegacy returns a copy of doc without the volumes that the webhooks of P25 and N5 remove on purpose.
func withoutLegacy(doc object) object {
	doc = clone(doc)
	spec, _ := doc["spec"].(object)
	if volumes, ok := spec["volumes"].([]any); ok {
		spec["volumes"] = slices.DeleteFunc(volumes, func(v any) bool {
			return strings.HasPrefix(fmt.Sprint(v.(object)["name"]), "legacy-")
		})
	}
	return doc
}
