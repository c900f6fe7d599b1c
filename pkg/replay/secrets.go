// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/admitkit/admitkit/internal/redact"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/review"
)

// hidden replaces a secret that cannot be compared.
const hidden = "(secret)"

// A cover replaces the secrets in answers, so that they can be compared with recorded ones.
type cover struct {
	redactor *redact.Redactor
	key      string // the name of the recorder's key, or "" if it is not known
}

func newCover(keyFile string, paths []string) (*cover, error) {
	key, c := redact.NewKey(), &cover{}
	if keyFile != "" {
		var err error
		if key, err = redact.ReadKey(keyFile); err != nil {
			return nil, err
		}
		c.key = key.ID()
	}
	var err error
	c.redactor, err = redact.New(key, paths)
	return c, err
}

// parse returns the answer of a version to a recorded call in the form of the recorded answers. recordedKey names the key
// of the recording, or is "" if it has no pseudonyms. With another key, the answer has a copy without secrets beside it.
func (c *cover) parse(req *review.Request, call *record.Call, code int, body []byte, recordedKey string) (*answer, error) {
	plain := parse(req, call.Type, code, body)
	if recordedKey == "" || plain.failure != "" {
		return plain, nil
	}
	covered, err := c.redactor.Answer(call.Request, body)
	if err != nil {
		return nil, fmt.Errorf("the secrets in the answer cannot be replaced: %w", err)
	}
	other := parse(req, call.Type, code, packed(covered))
	if recordedKey == c.key {
		return other, nil
	}
	plain.redacted = other
	return plain, nil
}

// packed returns an answer of package redact as the webhook sends it, with the patch in base64.
func packed(answer []byte) []byte {
	var document, response map[string]json.RawMessage
	if json.Unmarshal(answer, &document) != nil || json.Unmarshal(document["response"], &response) != nil || !bytes.HasPrefix(response["patch"], []byte("[")) {
		return answer
	}
	response["patch"], _ = json.Marshal([]byte(response["patch"])) // it always marshals, as do those below
	document["response"], _ = json.Marshal(response)
	answer, _ = json.Marshal(document)
	return answer
}

// withoutSecrets replaces the values of is that differ in other, which is the same object with pseudonyms, and those of was
// in the same places.
func withoutSecrets(was, is, other any) (old, now any) {
	switch v := is.(type) {
	case map[string]any:
		o, same := other.(map[string]any)
		if !same {
			return was, is
		}
		w, _ := was.(map[string]any)
		for name := range v {
			before, found := w[name]
			if before, v[name] = withoutSecrets(before, v[name], o[name]); found {
				w[name] = before
			}
		}
	case []any:
		o, same := other.([]any)
		if !same || len(o) != len(v) {
			return was, is
		}
		w, _ := was.([]any)
		for i := range v {
			j := partner(w, v, i)
			if j < 0 {
				_, v[i] = withoutSecrets(nil, v[i], o[i])
				continue
			}
			w[j], v[i] = withoutSecrets(w[j], v[i], o[i])
		}
	default:
		if !reflect.DeepEqual(is, other) {
			if reflect.TypeOf(was) == reflect.TypeOf(is) {
				was = hidden
			}
			return was, hidden
		}
	}
	return was, is
}

// partner returns the index in before of the element that is element i of after: that with the same name, or at the same
// index. It is -1 if there is none.
func partner(before, after []any, i int) int {
	if name := nameOf(after[i]); name != "" {
		for j := range before {
			if nameOf(before[j]) == name {
				return j
			}
		}
		return -1
	}
	if i < len(before) {
		return i
	}
	return -1
}

func nameOf(element any) string {
	m, _ := element.(map[string]any)
	name, _ := m["name"].(string)
	return name
}
