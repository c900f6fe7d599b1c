// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const seeds = 50

func TestCorrectRandomHandlersPass(t *testing.T) {
	for seed := range int64(seeds) {
		c, _ := Random(seed)
		if len(c.Laws) > 0 {
			t.Errorf("%s: a correct case names the laws %v", c.Name, c.Laws)
		}
		for _, p := range []probe{again, addedLater, keeps, bothVersions, besideSimilarParts} {
			if err := p(c); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
	}
}

func TestRandomIsReproducible(t *testing.T) {
	for seed := range int64(seeds) {
		one, buggyOne := Random(seed)
		two, buggyTwo := Random(seed)
		r1, err1 := created(one.New(), parse(rich))
		r2, err2 := created(two.New(), parse(rich))
		if one.Name != two.Name || err1 != nil || err2 != nil || !reflect.DeepEqual(r1, r2) {
			t.Errorf("seed %d: %s: %v, %v\n%s: %v, %v", seed, one.Name, r1, err1, two.Name, r2, err2)
		}
		n := strings.Count(one.Name, ",") + 1
		if n < 2 || n > 6 {
			t.Errorf("%s: %d parts", one.Name, n)
		}
		for i := range n + 2 {
			b1, ok1 := buggyOne(i)
			b2, ok2 := buggyTwo(i)
			if b1.Name != b2.Name || ok1 != ok2 || ok1 != (i < n) {
				t.Errorf("seed %d: %d: %s, %v and %s, %v", seed, i, b1.Name, ok1, b2.Name, ok2)
			}
		}
	}
}

func TestBrokenRandomHandlersFail(t *testing.T) {
	for seed := range int64(seeds) {
		_, buggy := Random(seed)
		for i := 0; ; i++ {
			c, ok := buggy(i)
			if !ok {
				break
			}
			if err := wrong(c); err == nil {
				t.Errorf("%s: all probes pass", c.Name)
			}
			if len(c.Laws) == 0 {
				t.Errorf("%s: the case names no law", c.Name)
			}
		}
	}
}

// TestEachBugAloneFails tests handlers with a single part. The probes must find no fault in the correct part, and must
// find each of its bugs.
func TestEachBugAloneFails(t *testing.T) {
	for i, newPart := range slices.Concat(metadataParts, containerParts, podParts) {
		m := newPartInputs(int64(i))
		p := newPart(m)
		c := composed("alone: "+p.name, []part{p}, -1, bug{})
		if err := wrong(c); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		for _, b := range p.bugs {
			c := composed("alone: "+describe([]part{p}, 0, b.name), []part{p}, 0, b).breaks(b.laws...)
			err := wrong(c)
			if err == nil {
				t.Errorf("%s: all probes pass", c.Name)
				continue
			}
			t.Logf("%s %v: %.100v", c.Name, c.Laws, err)
		}
	}
}

func newPartInputs(seed int64) *partInputs {
	return &partInputs{Rand: rand.New(rand.NewPCG(uint64(seed), 1)), word: "word-a", own: []string{"word-a"}}
}

// wrong runs several probes and returns the first error that one of them returns.
func wrong(c Case) error {
	for _, p := range []probe{again, freshly, addedLater, keeps, besideSimilarParts} {
		if err := p(c); err != nil {
			return err
		}
	}
	return nil
}

// besideSimilarParts calls the handler with objects that already have parts similar to those that it adds. It must keep
// the user's parts, and change nothing in a second call.
func besideSimilarParts(c Case) error {
	h := c.New()
	for _, before := range []object{parse(plain), parse(rich)} {
		after, err := created(h, before)
		if err != nil {
			return err
		}
		for name, change := range similarParts {
			doc := clone(before)
			change(doc, after)
			if err := callTwice(c, doc); err != nil {
				return fmt.Errorf("%s: %w: %s", name, err, text(doc))
			}
			if err := keep(c, doc); err != nil {
				return fmt.Errorf("%s: %w: %s", name, err, text(doc))
			}
			if err := usesOthers(h, doc); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// usesOthers returns an error if a call mounts a hostPath volume, because no handler adds such volumes: they belong to
// the user.
func usesOthers(h http.Handler, doc object) error {
	r, err := do(h, call{object: doc})
	if err != nil || !r.allowed {
		return err
	}
	for _, v := range objectsAt(doc, "spec", "volumes") {
		if v["hostPath"] != nil && strings.Count(text(r.object), fmt.Sprintf(`"name":%q`, v["name"])) > strings.Count(text(doc), fmt.Sprintf(`"name":%q`, v["name"])) {
			return fmt.Errorf("the call mounts the volume %v of the user: %s", v["name"], r.patch)
		}
	}
	return nil
}

// similarParts maps descriptions to functions that add parts to doc. The added parts resemble those that the handler
// adds, as seen in after, the result of a call for doc.
var similarParts = map[string]func(doc, after object){
	"containers of the same name in the other list": func(doc, after object) {
		spec := doc["spec"].(object)
		for _, lists := range [][2]string{{"containers", "initContainers"}, {"initContainers", "containers"}} {
			for _, c := range fresh(doc, after, "spec", lists[0]) {
				list, _ := spec[lists[1]].([]any)
				spec[lists[1]] = append(list, c)
			}
		}
	},
	"volumes of the same name with other content": func(doc, after object) {
		spec := doc["spec"].(object)
		for _, v := range fresh(doc, after, "spec", "volumes") {
			list, _ := spec["volumes"].([]any)
			spec["volumes"] = append(list, object{"name": v["name"], "hostPath": object{"path": "/"}})
		}
	},
	"mounts of another volume at the same path": func(doc, after object) {
		spec := doc["spec"].(object)
		for i, c := range objectsAt(doc, "spec", "containers") {
			for _, m := range fresh(c, counterpart(c, after), "volumeMounts") {
				name := fmt.Sprintf("others-%d", i)
				list, _ := c["volumeMounts"].([]any)
				c["volumeMounts"] = append(list, object{"name": name, "mountPath": m["mountPath"]})
				volumes, _ := spec["volumes"].([]any)
				spec["volumes"] = append(volumes, object{"name": name, "emptyDir": object{}})
			}
		}
	},
	"variables of the same name with a reference": func(doc, after object) {
		for _, c := range objectsAt(doc, "spec", "containers") {
			for _, e := range fresh(c, counterpart(c, after), "env") {
				list, _ := c["env"].([]any)
				c["env"] = append(list, object{"name": e["name"], "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.name"}}})
			}
		}
	},
	"host aliases of the same address": func(doc, after object) {
		for _, a := range fresh(doc, after, "spec", "hostAliases") {
			doc["spec"].(object)["hostAliases"] = []any{object{"ip": a["ip"], "hostnames": []any{"others.example.com"}}}
		}
	},
	"values in the fields that the handler changes": func(doc, _ object) {
		doc["metadata"].(object)["labels"] = object{"others": "yes"}
		spec := doc["spec"].(object)
		spec["nodeSelector"], spec["imagePullSecrets"] = object{"others": "yes"}, []any{object{"name": "others"}}
		for _, c := range objectsAt(doc, "spec", "containers") {
			c["args"], c["securityContext"] = []any{"--others"}, object{"runAsUser": 1}
			c["resources"] = object{"limits": object{"ephemeral-storage": "1Gi"}, "requests": object{"cpu": "3", "memory": "1Gi"}}
		}
	},
}

// fresh returns the elements of a list that are in after but not in before.
func fresh(before, after object, names ...string) []object {
	var out []object
	old, _ := member[[]any](before, names...)
	for _, e := range objectsAt(after, names...) {
		if count(old, e) == 0 {
			out = append(out, clone(e))
		}
	}
	return out
}

// counterpart returns the container in after with the name of c, or nil.
func counterpart(c, after object) object {
	for _, other := range objectsAt(after, "spec", "containers") {
		if other["name"] == c["name"] {
			return other
		}
	}
	return nil
}
