// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

// TestRender generates projects with random hooks, and checks that their files are valid Go, YAML and so on.
func TestRender(t *testing.T) {
	scheme := newScheme(t)
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.String())
	}
	names = append(names,
		"example.com/v1/widgets=example.com/shop/api/v1.Widget",
		"example.com/v1/gadgets=example.com/shop/api/v1.Gadget",
		"carts.v1beta1.example.org=example.org/cart/types.Cart",
		"serving.knative.dev/v1/services=knative.dev/serving/pkg/apis/serving/v1.Service")
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		p := &Project{
			Name: []string{"shop", "a", strings.Repeat("n", 50)}[r.IntN(3)], Domain: "shop.example.com", Module: "example.com/shop",
			Certs:         []string{SelfManaged, CertManager}[r.IntN(2)],
			PriorityClass: []string{"", "system-cluster-critical", "high"}[r.IntN(3)],
		}
		p.Version, p.GoVersion, p.Checkout = "v0.0.0", "1.26.0", "/home/me/admitkit"
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		n, m := r.IntN(6), 1+r.IntN(6)
		var err error
		if p.Hooks, err = p.hooksOf(names[:n], names[m/2:m/2+m]); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all, err := p.render(t.Context(), &tree{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		check(t, scheme, p, all)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// check checks each file of a project with a parser of its format.
func check(t *testing.T, scheme *runtime.Scheme, p *Project, all files) {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for name, text := range all {
		if bytes.Contains(text, []byte("<no value>")) || bytes.Contains(text, []byte("{{")) && path.Base(name) != "ci.yaml" || len(text) == 0 || text[len(text)-1] != '\n' {
			t.Errorf("%s:\n%s", name, text)
		}
		switch {
		case path.Ext(name) == ".go":
			if formatted, err := format.Source(text); err != nil || !bytes.Equal(formatted, text) {
				t.Errorf("%s is not formatted: %v", name, err)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				t.Error(err)
			}
		case strings.EqualFold(strings.TrimSuffix(path.Base(name), ".yaml"), "kustomization"):
			checkKustomization(t, name, all)
		case path.Ext(name) != ".yaml":
		case strings.HasPrefix(name, "config/"):
			checkObjects(t, name, text, strict, p)
		default:
			var read map[string]any
			if err := yaml.UnmarshalStrict(text, &read); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, h := range p.Hooks {
		for _, call := range []string{"\t" + h.Constructor() + "(),\n"} {
			if strings.Count(string(all[hooksFile]), call) != 1 {
				t.Errorf("%s has not one %q", hooksFile, call)
			}
		}
	}
}

// checkObjects decodes the manifests into the API types of Kubernetes. It skips those of cert-manager and Prometheus.
func checkObjects(t *testing.T, name string, text []byte, strict runtime.Decoder, p *Project) {
	t.Helper()
	for _, document := range strings.Split(string(text), "\n---\n") {
		if strings.Contains(document, "cert-manager.io/v1\n") || strings.Contains(document, "monitoring.coreos.com/v1\n") {
			continue
		}
		if onlyComments(document) {
			continue
		}
		object, _, err := strict.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, document)
			continue
		}
		switch o := object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			if len(o.Webhooks) == 0 || o.Webhooks[0].ClientConfig.Service.Name != p.Name {
				t.Errorf("%s: %+v", name, o)
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			if len(o.Webhooks) == 0 || o.Webhooks[0].ClientConfig.Service.Name != p.Name {
				t.Errorf("%s: %+v", name, o)
			}
		}
	}
}

func onlyComments(document string) bool {
	for _, line := range strings.Split(document, "\n") {
		if line != "" && line[0] != '#' && line != "---" {
			return false
		}
	}
	return true
}

// checkKustomization checks that the kustomization lists all files of its folder.
func checkKustomization(t *testing.T, name string, all files) {
	t.Helper()
	var k struct {
		APIVersion, Kind string
		Resources        []string
		Images           []map[string]string
	}
	if err := yaml.UnmarshalStrict(all[name], &k); err != nil || k.Kind != "Kustomization" {
		t.Errorf("%s: %v", name, err)
	}
	var want []string
	for other := range all {
		if path.Dir(other) == path.Dir(name) && other != name {
			want = append(want, path.Base(other))
		}
	}
	slices.Sort(want)
	slices.Sort(k.Resources)
	if !slices.Equal(k.Resources, want) {
		t.Errorf("%s lists %v, and there are %v", name, k.Resources, want)
	}
}

// TestConfigurationsOfANewProject checks that the configurations have all hooks, in the order of their files.
func TestConfigurationsOfANewProject(t *testing.T) {
	p := &Project{Name: "shop", Domain: "example.com", Certs: CertManager, Module: "example.com/shop"}
	var err error
	if p.Hooks, err = p.hooksOf([]string{"pods", "configmaps"}, []string{"secrets", "pods"}); err != nil {
		t.Fatal(err)
	}
	all := files{}
	if err := all.addManifests(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	text := all["config/webhooks/webhooks.yaml"]
	var got []string
	for _, line := range strings.Split(string(text), "\n") {
		if name, ok := strings.CutPrefix(line, "  name: "); ok {
			got = append(got, name)
		}
	}
	want := "[shop mutate-configmaps.shop.example.com mutate-pods.shop.example.com shop validate-pods.shop.example.com validate-secrets.shop.example.com]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}
