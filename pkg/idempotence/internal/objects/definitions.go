// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/customresource"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/generate"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A definition is one version of a CustomResourceDefinition.
type definition struct {
	resource *customresource.Resource
	version  *customresource.Version
	Schema   *generate.Schema
}

// Definitions maps the kinds of custom resources to their definitions.
type Definitions map[schema.GroupVersionKind]*definition

// Add compiles the served versions of a CustomResourceDefinition.
func (d Definitions) Add(crd *apiextensionsv1.CustomResourceDefinition) error {
	resource, err := customresource.New(crd)
	if err != nil {
		return err
	}
	for _, v := range resource.Definition.Spec.Versions {
		if !v.Served {
			continue
		}
		s, err := generate.ForCRD(resource.Definition, v.Name)
		if err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
		}
		d[resource.Versions[v.Name].Kind] = &definition{resource, resource.Versions[v.Name], s}
	}
	return nil
}

// Kinds returns the defined kinds in a fixed order.
func (d Definitions) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(d), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}

// Define makes k the kind of the custom resource with the definition.
func (k *Kind) Define(d *definition) {
	k.Custom, k.GoType = d, nil
	k.Resource.Resource, k.Namespaced = d.resource.Definition.Spec.Names.Plural, d.version.Namespaced
}

// takeIn prunes and defaults a custom resource by its schema, as the API server does.
func (d *definition) takeIn(raw []byte) (*Object, error) {
	doc, err := tree.Decode(raw)
	if err != nil {
		return nil, err
	}
	fields, ok := doc.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the object is not a %s: it is not a JSON object", d.version.Kind.Kind)
	}
	u := &unstructured.Unstructured{Object: fields}
	if got := u.GroupVersionKind(); got != d.version.Kind {
		return nil, fmt.Errorf("the object is a %s, not a %s", got, d.version.Kind)
	}
	if _, err := d.resource.Coerce(u, false); err != nil {
		return nil, err
	}
	d.resource.Default(u)
	return &Object{Raw: tree.Encode(u.Object), Doc: u.Object}, nil
}

// problems returns the API server's reasons to reject a new object.
func (d *definition) problems(o *Object) []string {
	u := toStore(o)
	d.version.PrepareForCreate(u)
	return texts(d.version.Validate(context.Background(), u))
}

func (d *definition) updateProblems(o, old *Object) []string {
	u, was := toStore(o), toStore(old)
	d.version.PrepareForUpdate(u, was, "")
	return texts(d.version.ValidateUpdate(context.Background(), u, was, ""))
}

// toStore returns a copy of an object with the name that the API server generates from generateName, because it
// validates an object with its name.
func toStore(o *Object) *unstructured.Unstructured {
	fields, _ := tree.Clone(o.Doc).(map[string]any)
	u := &unstructured.Unstructured{Object: fields}
	if prefix := u.GetGenerateName(); prefix != "" && u.GetName() == "" {
		u.SetName(generatedName(prefix))
	}
	return u
}

// texts returns the messages of errors. It leaves out the error that some rules were not evaluated because of the other
// errors: it has neither a field nor a value. Any other error without a field is about the whole object.
func texts(errs field.ErrorList) (out []string) {
	const noField = "<nil>"
	for _, err := range errs {
		text, ofObject := strings.CutPrefix(err.Error(), noField)
		switch {
		case !ofObject:
			out = append(out, text)
		case err.BadValue != nil || len(errs) == 1:
			out = append(out, "the object"+text)
		}
	}
	return out
}
