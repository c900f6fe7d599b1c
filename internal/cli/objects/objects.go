// SPDX-License-Identifier: Apache-2.0

// Package objects reads Kubernetes objects from files, folders, standard input and clusters, and
// records the source of each.
package objects

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/internal/textutil"
)

// An Object is a Kubernetes object and its source.
type Object struct {
	// JSON is the encoded object.
	JSON []byte
	// File is a path, "-" for standard input, or "" for a cluster. Line is the line where the object
	// begins: 1 or more, or 0 for a cluster.
	File string
	Line int

	GVK             schema.GroupVersionKind
	Namespace, Name string

	node *yaml.Node
}

// Where returns the source of the object as the beginning of a message, such as "pods.yaml:12".
func (o *Object) Where() string {
	if o.File == "" {
		return o.String()
	}
	return fmt.Sprintf("%s:%d", o.name(), o.Line)
}

func (o *Object) name() string { return Names(o.File) }

// Names lists files for a message, on one line. "-" becomes "standard input".
func Names(files ...string) string {
	names := slices.Clone(files)
	for i, name := range names {
		names[i] = textutil.VisibleLine(name)
		if name == "-" {
			names[i] = "standard input"
		}
	}
	return strings.Join(names, ", ")
}

// String returns the kind and name of the object, such as "Pod shop/web".
func (o *Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return strings.TrimSpace(o.GVK.Kind + " " + name)
}

// Decode decodes the object into a Go type as the API server does, with case-sensitive field names. If strict is true,
// unknown and duplicate fields are errors.
func (o *Object) Decode(into any, strict bool) error {
	var unknown []error
	var err error
	if strict {
		unknown, err = kjson.UnmarshalStrict(o.JSON, into)
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(o.JSON, into)
	}
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", o.Where(), o, err)
	}
	return nil
}

// Unstructured decodes the object without a Go type.
func (o *Object) Unstructured() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	return u, o.Decode(&u.Object, false)
}

// LineOf returns the line of a field. The path has names of fields and indexes of elements. If the field is
// missing, LineOf returns the line of its nearest parent. It returns 0 for an object from a cluster.
func (o *Object) LineOf(path ...any) int {
	node := o.node
	if node == nil {
		return o.Line
	}
	line := o.Line
	for _, step := range path {
		var next *yaml.Node
		switch at := step.(type) {
		case string:
			for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == at {
					next, line = node.Content[i+1], node.Content[i].Line
				}
			}
		case int:
			if node.Kind == yaml.SequenceNode && at < len(node.Content) {
				next = node.Content[at]
				line = next.Line
			}
		}
		if next == nil {
			return line
		}
		node = resolved(next)
	}
	return line
}

// Of returns the Object for a value with a Go type, such as one read from a cluster.
func Of(object runtime.Object, gvk schema.GroupVersionKind) (*Object, error) {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u["apiVersion"], u["kind"] = gvk.ToAPIVersionAndKind()
	o := &Object{}
	if o.JSON, err = json.Marshal(u); err != nil {
		return nil, err
	}
	return o, o.identify()
}
