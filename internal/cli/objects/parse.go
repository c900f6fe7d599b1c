// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// noObject is the error for a document that is not a Kubernetes object.
type noObject struct {
	error
	alike bool // the document looks like an object with a mistake
}

// noYAML is the error for a file that is not YAML, and may be a template.
type noYAML struct{ error }

// parse reads the documents of a file and splits lists into their items. With an error of type noObject, it also
// returns the documents that are objects.
func parse(file string, text []byte) ([]*Object, error) {
	if documents := jsonDocuments(text); documents != nil {
		return parseJSON(file, documents)
	}
	var p fileParser
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			if errors.Is(err, io.EOF) {
				return p.all, p.none
			}
			return nil, (&Object{File: file}).at(noYAML{err})
		}
		node := root(&document)
		if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
			continue // an empty document
		}
		o := &Object{File: file, Line: node.Line, node: node}
		if node.Kind == yaml.MappingNode {
			var err error
			if o.JSON, err = toJSON(node); err != nil {
				return nil, o.at(err)
			}
		}
		if err := p.add(o); err != nil {
			return nil, err
		}
	}
}

// at adds the file and the line to the error of a document. If the message begins with a line number, as in "line 5:
// bad indentation", that is the line.
func (o *Object) at(err error) error {
	at, message := *o, strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, rest, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				at.Line, message = line, rest
			}
		}
	}
	where := at.name()
	if at.Line > 0 {
		where = at.Where()
	}
	if errors.As(err, new(noYAML)) {
		return noYAML{fmt.Errorf("%s: %s", where, message)}
	}
	return fmt.Errorf("%s: %s", where, message)
}

// A fileParser collects the objects of a file.
type fileParser struct {
	all  []*Object
	none error // error for the first document that is not an object, preferably one that looks like an object
}

// add adds the objects of a document. o.JSON is empty if the document has no fields.
func (p *fileParser) add(o *Object) error {
	if missing := o.missing(); missing != nil {
		var none noObject
		if alike := alike(o.JSON); p.none == nil || alike && errors.As(p.none, &none) && !none.alike {
			p.none = noObject{missing, alike}
		}
		return nil
	}
	found, err := o.objects()
	p.all = append(p.all, found...)
	return err
}

func root(document *yaml.Node) *yaml.Node {
	if document.Kind == yaml.DocumentNode && len(document.Content) == 1 {
		return document.Content[0]
	}
	return document
}

// A document is one JSON document of a file that may have several.
type document struct {
	text []byte
	line int // first line of the document in the file, from 1
}

// jsonDocuments splits a JSON file into its documents. It returns nil for other files. A YAML parser cannot read all
// JSON: it rejects surrogate pairs such as "\ud83d\ude00".
func jsonDocuments(text []byte) (all []document) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	if begin := bytes.TrimLeft(text, " \t\r\n"); len(begin) == 0 || begin[0] != '{' && begin[0] != '[' || !utf8.Valid(text) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for line, before := 1, 0; ; {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return nil
		}
		end := int(decoder.InputOffset())
		line += bytes.Count(text[before:end-len(raw)], []byte("\n"))
		all = append(all, document{raw, line})
		line += bytes.Count(raw, []byte("\n"))
		before = end
	}
}

func parseJSON(file string, documents []document) ([]*Object, error) {
	var p fileParser
	for _, d := range documents {
		o := &Object{File: file, Line: d.line, node: linesOf(d)}
		if d.text[0] == '{' {
			o.JSON = d.text
			var err error
			if o.node != nil {
				err = wrongFields(o.node)
			} else {
				err = twiceInJSON(d.text)
			}
			if err != nil {
				return nil, o.at(err)
			}
		}
		if err := p.add(o); err != nil {
			return nil, err
		}
	}
	return p.all, p.none
}

// twiceInJSON finds duplicate fields in a JSON document that a YAML parser cannot read.
func twiceInJSON(text []byte) error {
	var into map[string]any
	again, err := kjson.UnmarshalStrict(text, &into)
	if err == nil && len(again) > 0 {
		err = again[0]
	}
	return err
}

// linesOf reads a document as YAML to find the line of each field. It returns nil if that fails. Surrogate pairs are
// replaced by text of the same length.
func linesOf(d document) *yaml.Node {
	text := bytes.Clone(d.text)
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] == 'u' && (text[i+1]|0x20) == 'd' && text[i+2] >= '8' { // JSON requires four digits here
			copy(text[i+1:], "fffd")
		}
	}
	var parsed yaml.Node
	if yaml.Unmarshal(text, &parsed) != nil {
		return nil
	}
	node := root(&parsed)
	shift(node, d.line-1)
	return node
}

func shift(node *yaml.Node, lines int) {
	node.Line += lines
	for _, n := range node.Content {
		shift(n, lines)
	}
}

// alike reports whether a document looks like a Kubernetes object.
func alike(document []byte) bool {
	var top map[string]json.RawMessage
	_ = json.Unmarshal(document, &top) // top stays empty if the document is not a mapping
	has := map[string]bool{}
	for name := range top {
		has[strings.ToLower(name)] = true
	}
	return has["apiversion"] || has["kind"] || has["webhooks"] || has["metadata"] && has["spec"]
}

// missing returns an error for a required field that the object lacks, or nil.
func (o *Object) missing() error {
	var top map[string]json.RawMessage
	missing := ""
	if len(o.JSON) == 0 || o.JSON[0] != '{' || json.Unmarshal(o.JSON, &top) != nil {
		missing = "fields"
	}
	for _, name := range []string{"apiVersion", "kind"} {
		if raw := string(top[name]); missing == "" && (raw == "" || raw == "null" || raw == `""`) {
			missing = name
		}
	}
	if missing == "" {
		return nil
	}
	at := *o
	for other := range top {
		if other != missing && strings.EqualFold(other, missing) {
			at.Line, missing = o.LineOf(other), fmt.Sprintf("%s, but %q", missing, other)
			break
		}
	}
	return fmt.Errorf("%s: not a Kubernetes object: it has no %s", at.Where(), missing)
}

// objects returns the items of a list, or the object itself. Items may refer to YAML anchors in other parts of the
// file. So objects takes the items from the JSON, where anchors are resolved, and only their lines from the YAML nodes.
func (o *Object) objects() ([]*Object, error) {
	if err := o.identify(); err != nil {
		return nil, err
	}
	var top map[string]json.RawMessage
	var list []json.RawMessage
	if !strings.HasSuffix(o.GVK.Kind, "List") || json.Unmarshal(o.JSON, &top) != nil ||
		json.Unmarshal(orNull(top["items"]), &list) != nil || list == nil {
		return []*Object{o}, nil
	}
	var nodes []*yaml.Node
	if items := resolved(child(o.node, "items")); items != nil && items.Kind == yaml.SequenceNode && len(items.Content) == len(list) {
		nodes = items.Content
	}
	var all []*Object
	for i, raw := range list {
		item := &Object{File: o.File, Line: o.Line, JSON: raw}
		if nodes != nil {
			item.node = resolved(nodes[i])
			item.Line = item.node.Line
		}
		found, err := item.objects()
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func resolved(node *yaml.Node) *yaml.Node {
	for node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

func child(node *yaml.Node, name string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1]
		}
	}
	return nil
}

// identify reads the kind, namespace and name of the object.
func (o *Object) identify() error {
	if err := o.missing(); err != nil {
		return err
	}
	var top, metadata map[string]json.RawMessage
	if err := json.Unmarshal(o.JSON, &top); err != nil {
		return fmt.Errorf("%s: %w", o.Where(), err)
	}
	if raw := top["metadata"]; len(raw) > 0 && raw[0] != '{' && raw[0] != 'n' {
		return o.wrong("an object", raw, "metadata")
	} else if err := json.Unmarshal(orNull(raw), &metadata); err != nil {
		return fmt.Errorf("%s: metadata: %w", o.Where(), err)
	}
	var version, kind, generateName string
	for _, field := range []struct {
		of   map[string]json.RawMessage
		path []string
		into *string
	}{
		{top, []string{"apiVersion"}, &version}, {top, []string{"kind"}, &kind},
		{metadata, []string{"metadata", "name"}, &o.Name}, {metadata, []string{"metadata", "generateName"}, &generateName},
		{metadata, []string{"metadata", "namespace"}, &o.Namespace},
	} {
		raw := orNull(field.of[field.path[len(field.path)-1]])
		if json.Unmarshal(raw, field.into) != nil {
			return o.wrong("a string", raw, field.path...)
		}
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return fmt.Errorf("%s: apiVersion: %w", o.Where(), err)
	}
	o.GVK = gv.WithKind(kind)
	if o.Name == "" {
		o.Name = generateName
	}
	return nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// wrong returns an error for a field whose value has the wrong type.
func (o *Object) wrong(want string, raw json.RawMessage, path ...string) error {
	at := *o
	steps := make([]any, len(path))
	for i, name := range path {
		steps[i] = name
	}
	at.Line = o.LineOf(steps...)
	is := "a number"
	switch raw[0] {
	case '{':
		is = "an object"
	case '[':
		is = "a list"
	case '"':
		is = "a string"
	case 't', 'f':
		is = "a boolean"
	}
	return fmt.Errorf("%s: %s: must be %s, not %s", at.Where(), strings.Join(path, "."), want, is)
}
