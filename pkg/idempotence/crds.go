// SPDX-License-Identifier: Apache-2.0

package idempotence

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

// A definition is a version of a custom resource.
type definition struct {
	resource *customresource.Resource
	version  *customresource.Version
	schema   *generate.Schema
}

// define compiles the versions that are served.
func (o *options) define(crd *apiextensionsv1.CustomResourceDefinition) error {
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
		if o.defined == nil {
			o.defined = map[schema.GroupVersionKind]*definition{}
		}
		o.defined[resource.Versions[v.Name].Kind] = &definition{resource, resource.Versions[v.Name], s}
	}
	return nil
}

// definedKinds are those with a definition, in an order that is always the same.
func (o *options) definedKinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(o.defined), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}

// kindOf finds out about a kind: by its definition, or by what the rules say.
func (o *options) kindOf(subject Subject, gvk schema.GroupVersionKind) *kind {
	k := kindOf(gvk, builtins)
	d := o.defined[gvk]
	if d == nil {
		return subject.named(k)
	}
	k.custom, k.goType = d, nil
	k.resource.Resource, k.namespaced = d.resource.Definition.Spec.Names.Plural, d.version.Namespaced
	return k
}

// takeIn has the API server take in a custom resource: without the fields that the schema lacks, and with
// its defaults.
func (d *definition) takeIn(raw []byte) (*object, error) {
	doc, err := tree.Decode(raw)
	if err != nil {
		return nil, err
	}
	fields, ok := doc.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is no %s", d.version.Kind.Kind)
	}
	u := &unstructured.Unstructured{Object: fields}
	if got := u.GroupVersionKind(); got != d.version.Kind {
		return nil, fmt.Errorf("it is a %s, and no %s", got, d.version.Kind)
	}
	if _, err := d.resource.Coerce(u, false); err != nil {
		return nil, err
	}
	d.resource.Default(u)
	return &object{raw: tree.Encode(u.Object), doc: u.Object}, nil
}

// problems are those of a new object.
func (d *definition) problems(o *object) []string {
	u := toStore(o)
	d.version.PrepareForCreate(u)
	return texts(d.version.Validate(context.Background(), u))
}

func (d *definition) updateProblems(o, old *object) []string {
	u, was := toStore(o), toStore(old)
	d.version.PrepareForUpdate(u, was, "")
	return texts(d.version.ValidateUpdate(context.Background(), u, was, ""))
}

// toStore is a copy of an object with a name, as it has when it is validated.
func toStore(o *object) *unstructured.Unstructured {
	fields, _ := tree.Clone(o.doc).(map[string]any)
	u := &unstructured.Unstructured{Object: fields}
	if prefix := u.GetGenerateName(); prefix != "" && u.GetName() == "" {
		u.SetName(generatedName(prefix))
	}
	return u
}

func texts(errs field.ErrorList) (out []string) {
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}
