// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admitkit/admitkit/internal/problem"
)

// parse parses a value of --mutate or --validate. module is the module path of the project.
func parse(text, module string) (*Kind, error) {
	name, goType, custom := strings.Cut(text, "=")
	if !custom {
		return find(name)
	}
	const form = "write GROUP/VERSION/PLURAL=PACKAGE.Type, such as example.com/v1/widgets=example.com/shop/api/v1.Widget"
	group, version, resource, err := split(name)
	switch {
	case err != nil:
		return nil, err
	case group == nil || version == "":
		return nil, problem.New("%q lacks the group or the version of %s", text, resource).Hint(form)
	case len(validation.IsDNS1123Subdomain(*group)) > 0 || !strings.Contains(*group, "."):
		return nil, problem.New("%q: %q is not an API group of custom resources: such groups are domain names", text, *group).Hint(form)
	case len(validation.IsDNS1035Label(version)) > 0 || len(validation.IsDNS1035Label(resource)) > 0:
		return nil, problem.New("%q: version and plural must be lower-case letters and digits", text).Hint(form)
	}
	dot := strings.LastIndex(goType, ".")
	if dot < 0 || dot < strings.LastIndex(goType, "/") {
		return nil, problem.New("%q: %q is not a Go type", text, goType).Hint(form)
	}
	k := &Kind{Resource: resource, Package: goType[:dot], Type: goType[dot+1:], namespaced: true}
	k.GroupVersionKind = schema.GroupVersionKind{Group: *group, Version: version, Kind: k.Type}
	if !token.IsIdentifier(k.Type) || !token.IsExported(k.Type) {
		return nil, problem.New("%q: %q is not an exported Go type", text, k.Type).Hint(form)
	}
	if !importPath.MatchString(k.Package) {
		return nil, problem.New("%q: %q is not an import path", text, k.Package).Hint(form)
	}
	for _, b := range Kinds() {
		if b.stem() == k.stem() || b.name() == k.name() {
			k.ambiguous = k.groupName()
		}
	}
	k.Sample = fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata:\n  name: sample\n  namespace: default\n", k.Group, k.Version, k.Kind)
	return k, k.locate(text, module)
}

// importPath matches import paths. It allows no characters that would end a string or a line of Go.
var importPath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*$`)

// locate sets k.local if the Go type is in the module of the project. It rejects the main package, and packages in
// folders that every project uses for other code.
func (k *Kind) locate(text, module string) error {
	if k.Package == module {
		return problem.New("%q: the package %s is the main program, which cannot be imported", text, module).Hint("%s/%s=%s/api/%s.%s", k.Group, k.Version+"/"+k.Resource, module, k.Version, k.Type)
	}
	folder, local := strings.CutPrefix(k.Package, module+"/")
	if !local {
		return nil
	}
	if slices.Contains([]string{"hooks", "e2e", "internal/server", "config", "samples"}, folder) || strings.Contains("/"+folder+"/", "/../") {
		return problem.New("%q: the project uses the folder %s for something else", text, folder).Hint("%s/api/%s.%s", module, k.Version, k.Type)
	}
	k.local = folder
	return nil
}
