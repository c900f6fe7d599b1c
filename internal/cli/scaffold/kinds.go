// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/problem"
)

//go:embed kinds.yaml
var kindsFile string

// A Kind is what a hook is for.
type Kind struct {
	schema.GroupVersionKind
	Resource string
	// Package and Type are its Go type.
	Package, Type string
	// Sample is an object of the kind, as YAML.
	Sample string
	// Beware is what to know before there is a hook for it.
	Beware string

	namespaced bool
	builtIn    bool
	ambiguous  string // tells it from another built-in one of the same name
	local      string // the folder of the package, if it is in the module of the project
}

// Imported tells whether its package is one of Kubernetes.
func (k *Kind) Imported() bool { return k.builtIn }

// Namespaced tells whether objects of the kind are in namespaces.
func (k *Kind) Namespaced() bool { return k.namespaced }

// NeedsKinds tells whether pkg/webhook would take the Go type for another kind: see its WithKinds.
func (k *Kind) NeedsKinds() bool { return !k.builtIn && path.Base(k.Package) != k.Version }

// GoType is how the files write the type.
func (k *Kind) GoType() string { return k.Alias() + "." + k.Type }

// Alias is how the files name the package: k8s.io/api/apps/v1 is appsv1.
func (k *Kind) Alias() string {
	base, above := path.Base(k.Package), path.Base(path.Dir(k.Package))
	alias := identifier(base)
	if likeVersion(base) {
		alias = identifier(above) + alias
	}
	if slices.Contains([]string{"", "context", "hooks", "http", "idempotence", "json", "metav1", "ptr", "testing", "time", "webhook", "webhooktest"}, alias) || alias[0] <= '9' {
		alias = "api" + alias
	}
	return alias
}

// String is how a user names it.
func (k *Kind) String() string {
	return strings.TrimPrefix(k.Group+"/"+k.Version+"/"+k.Resource, "/")
}

// name begins the names of its functions.
func (k *Kind) name() string {
	switch {
	case k.ambiguous == "":
		return k.Kind
	case likeVersion(k.ambiguous):
		return k.Kind + strings.ToUpper(k.ambiguous)
	}
	return strings.ToUpper(k.ambiguous[:1]) + k.ambiguous[1:] + k.Kind
}

// stem is in the names of its files.
func (k *Kind) stem() string { return strings.TrimSuffix(k.Resource+"_"+k.ambiguous, "_") }

func identifier(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(text))
}

// likeVersion tells whether a text looks like v1, v2beta1 or so.
func likeVersion(text string) bool {
	return len(text) > 1 && text[0] == 'v' && text[1] >= '1' && text[1] <= '9'
}

// Kinds returns the built-in kinds.
var Kinds = sync.OnceValue(func() []*Kind {
	var all []*Kind
	for _, document := range strings.Split(kindsFile, "\n---\n")[1:] {
		head, sample, _ := strings.Cut(document, "\n")
		words := strings.SplitN(strings.TrimPrefix(head, "# "), " ", 3)
		var object struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(sample), &object); err != nil {
			panic(err) // a test reads the file
		}
		k := &Kind{
			GroupVersionKind: schema.FromAPIVersionAndKind(object.APIVersion, object.Kind),
			Resource:         words[0], namespaced: words[1] == "namespaced", builtIn: true,
			Type: object.Kind, Sample: strings.TrimSpace(sample) + "\n",
		}
		if len(words) > 2 {
			k.Beware = words[2]
		}
		k.Package = "k8s.io/api/" + k.groupName() + "/" + k.Version
		if k.Group == "apiextensions.k8s.io" {
			k.Package = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
		}
		all = append(all, k)
	}
	for _, k := range all {
		for _, other := range all {
			switch {
			case k == other || k.Resource != other.Resource:
			case k.Group == other.Group:
				k.ambiguous = k.Version
			default:
				k.ambiguous = k.groupName()
			}
		}
	}
	return all
})

// groupName is the group without its domain.
func (k *Kind) groupName() string {
	if k.Group == "" {
		return "core"
	}
	name, _, _ := strings.Cut(k.Group, ".")
	return name
}

// never are resources that webhooks are not called for, or that make no sense with them.
var never = map[string]string{
	"validatingwebhookconfigurations":   "the API server calls no webhook for them, so that a broken one can be taken away",
	"mutatingwebhookconfigurations":     "the API server calls no webhook for them, so that a broken one can be taken away",
	"validatingadmissionpolicies":       "the API server calls no webhook for them, so that a broken one can be taken away",
	"validatingadmissionpolicybindings": "the API server calls no webhook for them, so that a broken one can be taken away",
	"mutatingadmissionpolicies":         "the API server calls no webhook for them, so that a broken one can be taken away",
	"mutatingadmissionpolicybindings":   "the API server calls no webhook for them, so that a broken one can be taken away",
	"tokenreviews":                      "they ask who somebody is, with each request, and are stored nowhere",
	"subjectaccessreviews":              "they ask who may do what, with each request, and are stored nowhere",
	"selfsubjectaccessreviews":          "they ask who may do what, with each request, and are stored nowhere",
	"localsubjectaccessreviews":         "they ask who may do what, with each request, and are stored nowhere",
	"componentstatuses":                 "nobody writes them",
}

// find finds what a user names: pods, apps/v1/deployments, deployments.apps, deployments.v1.apps.
func find(text string) (*Kind, error) {
	group, version, resource, err := split(text)
	if err != nil {
		return nil, err
	}
	if why := never[resource]; why != "" {
		return nil, problem.New("no hooks for %s: %s", resource, why)
	}
	var found []*Kind
	for _, k := range Kinds() {
		if k.Resource == resource && (group == nil || *group == k.Group || *group == k.groupName()) && (version == "" || version == k.Version) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, unknown(text, resource)
	}
	var names []string
	for _, k := range found {
		names = append(names, k.String())
	}
	return nil, problem.New("%q is the name of several kinds: %s", text, strings.Join(names, ", ")).Hint("name one, such as %s", names[len(names)-1])
}

// split takes a name apart. Group and version are nil and empty where the name does not say them.
func split(text string) (group *string, version, resource string, err error) {
	if parts := strings.Split(text, "/"); len(parts) > 1 {
		resource = parts[len(parts)-1]
		switch {
		case len(parts) == 3:
			return &parts[0], parts[1], resource, nil
		case len(parts) == 2 && likeVersion(parts[0]):
			return new(string), parts[0], resource, nil
		case len(parts) == 2 && subresource(parts[1]):
			return nil, "", "", problem.New("%q is a subresource: hooks for these are not scaffolded", text).Hint("https://github.com/admitkit/admitkit/blob/main/docs/registration.md says how to write one")
		case len(parts) == 2:
			return &parts[0], "", resource, nil
		}
		return nil, "", "", problem.New("%q is not the name of a kind", text).Hint("write PLURAL, or GROUP/VERSION/PLURAL, such as apps/v1/deployments")
	}
	resource, rest, dotted := strings.Cut(text, ".")
	if !dotted {
		return nil, "", resource, nil
	}
	if first, after, _ := strings.Cut(rest, "."); likeVersion(first) {
		return &after, first, resource, nil
	}
	return &rest, "", resource, nil
}

func subresource(name string) bool {
	return slices.Contains([]string{"status", "scale", "eviction", "binding", "exec", "attach", "portforward", "proxy", "log", "token", "approval", "finalize", "resize", "ephemeralcontainers"}, name)
}

// unknown says what may have been meant.
func unknown(text, resource string) error {
	err := problem.New("no kind %q is known", text)
	var near []string
	for _, k := range Kinds() {
		if strings.EqualFold(k.Kind, resource) || k.Resource == resource || distance(k.Resource, strings.ToLower(resource)) <= 2 {
			near = append(near, k.String())
		}
	}
	if len(near) > 0 {
		return err.Hint("did you mean %s?", strings.Join(near, " or "))
	}
	return err.Hint("admitkit init --list-kinds  # the built-in ones").
		Hint("a kind of your own needs its Go type: example.com/v1/widgets=example.com/shop/api/v1.Widget")
}

// distance is how many letters have to be put in, taken out or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
