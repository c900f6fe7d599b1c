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

// A Kind is a kind of objects, with its Go type.
type Kind struct {
	schema.GroupVersionKind
	Resource string
	// Package and Type are the import path and the name of the Go type.
	Package, Type string
	// Sample is an object of the kind, as YAML.
	Sample string
	// Beware is a warning about hooks for the kind, or empty.
	Beware string

	namespaced bool
	builtIn    bool
	ambiguous  string // group or version, if several kinds have the same resource name
	local      string // folder of the Go type, if it is in the module of the project
}

// Imported reports whether the Go type is in a Kubernetes package.
func (k *Kind) Imported() bool { return k.builtIn }

// Namespaced reports whether objects of the kind belong to a namespace.
func (k *Kind) Namespaced() bool { return k.namespaced }

// NeedsKinds reports whether the hook needs WithKinds, because pkg/webhook cannot derive the version from the package.
func (k *Kind) NeedsKinds() bool { return !k.builtIn && path.Base(k.Package) != k.Version }

// GoType returns the qualified name of the Go type, such as corev1.Pod.
func (k *Kind) GoType() string { return k.Alias() + "." + k.Type }

// Alias returns the name under which generated files import the package, such as appsv1 for k8s.io/api/apps/v1.
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

// String returns the kind as a value of --mutate, such as apps/v1/deployments.
func (k *Kind) String() string {
	return strings.TrimPrefix(k.Group+"/"+k.Version+"/"+k.Resource, "/")
}

// name returns the kind's part of function names. It is unique among the built-in kinds.
func (k *Kind) name() string {
	switch {
	case k.ambiguous == "":
		return k.Kind
	case likeVersion(k.ambiguous):
		return k.Kind + strings.ToUpper(k.ambiguous)
	}
	return strings.ToUpper(k.ambiguous[:1]) + k.ambiguous[1:] + k.Kind
}

// stem returns the kind's part of file names.
func (k *Kind) stem() string { return strings.TrimSuffix(k.Resource+"_"+k.ambiguous, "_") }

func identifier(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(text))
}

// likeVersion reports whether a text looks like an API version, such as v1 or v2beta1.
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
			panic(err) // tests read the same embedded file
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

// groupName returns the first part of the group, or "core".
func (k *Kind) groupName() string {
	if k.Group == "" {
		return "core"
	}
	name, _, _ := strings.Cut(k.Group, ".")
	return name
}

// never maps resources to the reason why no hooks are generated for them.
var never = map[string]string{
	"validatingwebhookconfigurations":   "the API server calls only static webhooks for them, so that a broken one can be removed",
	"mutatingwebhookconfigurations":     "the API server calls only static webhooks for them, so that a broken one can be removed",
	"validatingadmissionpolicies":       "the API server calls only static webhooks for them, so that a broken one can be removed",
	"validatingadmissionpolicybindings": "the API server calls only static webhooks for them, so that a broken one can be removed",
	"mutatingadmissionpolicies":         "the API server calls only static webhooks for them, so that a broken one can be removed",
	"mutatingadmissionpolicybindings":   "the API server calls only static webhooks for them, so that a broken one can be removed",
	"tokenreviews":                      "the API server uses them to authenticate requests, and stores none",
	"subjectaccessreviews":              "the API server uses them to authorize requests, and stores none",
	"selfsubjectaccessreviews":          "the API server uses them to authorize requests, and stores none",
	"localsubjectaccessreviews":         "the API server uses them to authorize requests, and stores none",
	"componentstatuses":                 "they are read-only",
}

// find returns the built-in kind for a name such as pods, apps/v1/deployments, deployments.apps or deployments.v1.apps.
func find(text string) (*Kind, error) {
	group, version, resource, err := split(text)
	if err != nil {
		return nil, err
	}
	if why := never[resource]; why != "" {
		return nil, problem.New("%s cannot have hooks: %s", resource, why)
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
	return nil, problem.New("%q is ambiguous: %s", text, strings.Join(names, ", ")).Hint("use one of them, such as %s", names[len(names)-1])
}

// split splits the name of a kind. group is nil, and version is empty, if the name does not have them.
func split(text string) (group *string, version, resource string, err error) {
	if parts := strings.Split(text, "/"); len(parts) > 1 {
		resource = parts[len(parts)-1]
		switch {
		case len(parts) == 3:
			return &parts[0], parts[1], resource, nil
		case len(parts) == 2 && likeVersion(parts[0]):
			return new(string), parts[0], resource, nil
		case len(parts) == 2 && subresource(parts[1]):
			return nil, "", "", problem.New("%q is a subresource, for which no hooks are generated", text).Hint("to write one: https://github.com/admitkit/admitkit/blob/main/docs/registration.md")
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

// unknown returns the error for an unknown kind, with similar names as a hint.
func unknown(text, resource string) error {
	err := problem.New("unknown kind %q", text)
	var near []string
	for _, k := range Kinds() {
		if strings.EqualFold(k.Kind, resource) || k.Resource == resource || distance(k.Resource, strings.ToLower(resource)) <= 2 {
			near = append(near, k.String())
		}
	}
	if len(near) > 0 {
		return err.Hint("did you mean %s?", strings.Join(near, " or "))
	}
	return err.Hint("admitkit init --list-kinds  # lists the built-in kinds").
		Hint("a custom resource needs its Go type: example.com/v1/widgets=example.com/shop/api/v1.Widget")
}

// distance returns the Levenshtein distance of two words.
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
