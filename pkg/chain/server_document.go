// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"
	"maps"
	"net/url"

	"sigs.k8s.io/json"
)

// A document is an object as decoded JSON. Integers stay integers.
type document map[string]any

func decodeDocument(raw []byte) (document, error) {
	var d document
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &d); err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errors.New("null is not an object")
	}
	return d, nil
}

func (d document) encode() []byte { return encode(d) }

func (d document) metadata() map[string]any {
	m, _ := d["metadata"].(map[string]any)
	return m
}

// meta returns a string of the metadata, or "".
func (d document) meta(key string) string {
	s, _ := d.metadata()[key].(string)
	return s
}

// withMeta returns a copy with changed metadata; nil removes a key.
func (d document) withMeta(change map[string]any) document {
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

// query is how the options of a CONNECT are sent.
func (d document) query() url.Values {
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
