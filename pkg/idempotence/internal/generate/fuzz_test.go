// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// The generator must find a text for each of these patterns, which are typical of custom resources.
func TestPatternsAreMatched(t *testing.T) {
	for _, pattern := range []string{
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`, `^([0-9]+)(\.[0-9]+)?(s|m|h)$`, `^(sha256:)?[a-f0-9]{64}$`,
		`^https?://.+$`, `^\d{1,3}(\.\d{1,3}){3}(/\d{1,2})?$`, `^[^/]+/[^/]+$`, `^$|^.{3,9}$`, `(?i)^true|false$`, `^v[1-9][0-9]*(alpha|beta)?$`,
		`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`,
	} {
		for seed := range uint64(50) {
			n := &node{sort: textSort, limits: &limits{pattern: regexp.MustCompile(pattern)}}
			f := &filler{build: &build{Generator: &Generator{}, r: source(seed)}}
			if v, ok := f.text(n); !ok || !n.limits.pattern.MatchString(v.(string)) {
				t.Errorf("seed %d: %v for %s", seed, v, pattern)
			}
		}
	}
}

// FuzzForCRD generates objects for arbitrary schemas. The generation must end. An addition to a valid object must leave
// the object valid.
func FuzzForCRD(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"spec":{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^a{3,}$"}}}}}`,
		`{"type":"object","properties":{"spec":{"type":"array","minItems":3,"maxItems":2,"items":{"type":"integer","minimum":5,"maximum":4}}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","minProperties":9000,"additionalProperties":{"type":"number","multipleOf":0}}}}`,
		`{"type":"object","required":["x"],"properties":{"x":{"type":"string","minLength":9000000000000},"y":{"x-kubernetes-int-or-string":true}}}`,
	} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		var props apiextensionsv1.JSONSchemaProps
		if len(raw) > 10000 || json.Unmarshal(raw, &props) != nil {
			return
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Spec.Names.Kind, crd.Spec.Group = "Thing", "example.com"
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props}},
		}
		s, err := ForCRD(crd, "v1")
		if err != nil {
			return
		}
		g := &Generator{Schema: s}
		r := rand.New(rand.NewPCG(seed, 1))
		o, _ := g.Object(r, nil)
		valid := s.valid(o)
		for _, at := range g.Places(o) {
			a, ok := g.Addition(r, o, at)
			if !ok {
				continue
			}
			if with, ok := a.Apply(o); !ok || valid && !s.valid(with) {
				t.Fatalf("adding to %s: %s", at, tree.Encode(with))
			}
		}
	})
}
