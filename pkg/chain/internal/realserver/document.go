// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"

	kjson "sigs.k8s.io/json"
)

// A Document is an object as decoded JSON. Integers stay integers.
type Document map[string]any

func decodeDocument(raw []byte) (Document, error) {
	var d Document
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &d); err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errors.New("null is not an object")
	}
	return d, nil
}

// encodeJSON encodes a value that this package made. It panics if the value cannot be encoded.
func encodeJSON(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return b
}

// Encode returns the object as JSON.
func (d Document) Encode() []byte { return encodeJSON(d) }

func (d Document) metadata() map[string]any {
	m, _ := d["metadata"].(map[string]any)
	return m
}

// meta returns a string field of the metadata. It returns "" if there is no such string.
func (d Document) meta(key string) string {
	s, _ := d.metadata()[key].(string)
	return s
}

// withMeta returns a copy with changed values in the metadata. A nil value removes the key.
func (d Document) withMeta(change map[string]any) Document {
	c := maps.Clone(d)
	m := maps.Clone(d.metadata())
	if m == nil {
		m = map[string]any{}
	}
	for key, value := range change {
		if value == nil {
			delete(m, key)
		} else {
			m[key] = value
		}
	}
	c["metadata"] = m
	return c
}

// query returns the query parameters in which the options of a CONNECT are sent.
func (d Document) query() url.Values {
	q := url.Values{}
	for key, value := range d {
		if key == "kind" || key == "apiVersion" {
			continue
		}
		values, ok := value.([]any)
		if !ok {
			values = []any{value}
		}
		for _, v := range values {
			if v != nil {
				q.Add(key, fmt.Sprint(v))
			}
		}
	}
	return q
}
