// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// ForCRD returns the schema of one version of a custom resource. Generated objects are validated with the API server's
// code, including CEL rules. Where random values do not match a pattern or satisfy a rule, samples are needed.
func ForCRD(crd *apiextensionsv1.CustomResourceDefinition, version string) (*Schema, error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return nil, fmt.Errorf("%s has no version %q", crd.Name, version)
	}
	v := crd.Spec.Versions[i]
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("version %s of %s has no schema", version, crd.Name)
	}
	check, err := newCheck(v.Schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of version %s of %s: %w", version, crd.Name, err)
	}
	root, err := nodeOf(v.Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of version %s of %s: %w", version, crd.Name, err)
	}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		root.fields = slices.DeleteFunc(root.fields, func(m member) bool { return m.name == name })
	}
	root.fields = append(root.fields, member{name: "metadata", node: metadataNode()})
	root.fields = append(root.fields, member{name: "apiVersion", node: &node{sort: textSort}}, member{name: "kind", node: &node{sort: textSort}})
	slices.SortFunc(root.fields, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return &Schema{
		GVK:     schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind},
		Cluster: crd.Spec.Scope == apiextensionsv1.ClusterScoped, root: root, check: check,
	}, nil
}

// nodeOf converts a schema and the schemas below it.
func nodeOf(p *apiextensionsv1.JSONSchemaProps) (*node, error) {
	n := &node{nullable: p.Nullable, embedded: p.XEmbeddedResource, open: isTrue(p.XPreserveUnknownFields)}
	switch {
	case p.XIntOrString:
		n.sort = intOrStringSort
	case p.Type == "object" || p.Type == "" && len(p.Properties) > 0:
		n.sort = objectSort
	default:
		n.sort = sortNames[p.Type]
	}
	var err error
	if n.limits, err = limitsOf(p); err != nil {
		return nil, err
	}
	if p.Default != nil {
		if n.standard, err = decode(p.Default.Raw); err != nil {
			return nil, err
		}
	}
	for _, raw := range p.Enum {
		v, err := decode(raw.Raw)
		if err != nil {
			return nil, err
		}
		n.enum = append(n.enum, v)
	}
	if err := n.members(p); err != nil {
		return nil, err
	}
	return n, n.elements(p)
}

var sortNames = map[string]sort{
	"array": listSort, "string": textSort, "integer": integerSort, "number": numberSort, "boolean": booleanSort,
}

func isTrue(p *bool) bool { return p != nil && *p }

func decode(raw []byte) (v any, err error) {
	err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &v)
	return v, err
}

func (n *node) members(p *apiextensionsv1.JSONSchemaProps) error {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		props := p.Properties[name]
		inner, err := nodeOf(&props)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		// An omitted member gets its default before validation, so it is not required.
		n.fields = append(n.fields, member{name, inner, slices.Contains(p.Required, name) && props.Default == nil})
	}
	if extra := p.AdditionalProperties; extra != nil && (extra.Allows || extra.Schema != nil) && len(p.Properties) == 0 {
		n.sort, n.collection, n.elem = mapSort, Map, &node{}
		if extra.Schema != nil {
			inner, err := nodeOf(extra.Schema)
			if err != nil {
				return err
			}
			n.elem = inner
		}
	}
	return nil
}

func (n *node) elements(p *apiextensionsv1.JSONSchemaProps) error {
	if n.sort != listSort {
		return nil
	}
	n.elem, n.collection = &node{}, Atomic
	if p.Items != nil && p.Items.Schema != nil {
		inner, err := nodeOf(p.Items.Schema)
		if err != nil {
			return err
		}
		n.elem = inner
	}
	if p.XListType == nil {
		return nil
	}
	switch *p.XListType {
	case "set":
		n.collection = Set
	case "map":
		n.collection, n.keys = Keyed, p.XListMapKeys
		for i := range n.elem.fields {
			// A key with a default can be omitted. Generated elements have it, because two elements without it would be
			// equal.
			m := &n.elem.fields[i]
			m.required = m.required || slices.Contains(n.keys, m.name)
		}
	}
	return nil
}

// limitsOf reads the constraints besides the type, including those in allOf.
func limitsOf(p *apiextensionsv1.JSONSchemaProps) (*limits, error) {
	l := &limits{
		minimum: p.Minimum, maximum: p.Maximum, exclusiveMin: p.ExclusiveMinimum, exclusiveMax: p.ExclusiveMaximum, multipleOf: p.MultipleOf,
		lengthMin: p.MinLength, lengthMax: p.MaxLength, format: p.Format, itemsMin: p.MinItems, itemsMax: p.MaxItems,
		membersMin: p.MinProperties, membersMax: p.MaxProperties, uniqueItems: p.UniqueItems,
		anyOf: alternatives(p.AnyOf), oneOf: alternatives(p.OneOf),
	}
	if p.Pattern != "" {
		re, err := regexp.Compile(p.Pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		l.pattern = re
	}
	for i := range p.AllOf {
		more, err := limitsOf(&p.AllOf[i])
		if err != nil {
			return nil, err
		}
		l.add(more)
	}
	return l, nil
}

// add copies the constraints that l does not have. If both have one, l keeps its own, and the later validation finds
// values that violate the other.
func (l *limits) add(more *limits) {
	fill(&l.minimum, more.minimum)
	fill(&l.maximum, more.maximum)
	fill(&l.multipleOf, more.multipleOf)
	fill(&l.lengthMin, more.lengthMin)
	fill(&l.lengthMax, more.lengthMax)
	fill(&l.itemsMin, more.itemsMin)
	fill(&l.itemsMax, more.itemsMax)
	fill(&l.pattern, more.pattern)
	l.exclusiveMin, l.exclusiveMax = l.exclusiveMin || more.exclusiveMin, l.exclusiveMax || more.exclusiveMax
	l.anyOf, l.oneOf = append(l.anyOf, more.anyOf...), append(l.oneOf, more.oneOf...)
	if l.format == "" {
		l.format = more.format
	}
}

func fill[T any](p **T, otherwise *T) {
	if *p == nil {
		*p = otherwise
	}
}

// alternatives returns the required members of each schema in the list, or nil if no schema requires any.
func alternatives(of []apiextensionsv1.JSONSchemaProps) (out [][]string) {
	for _, p := range of {
		if len(p.Required) > 0 {
			out = append(out, p.Required)
		}
	}
	return out
}
