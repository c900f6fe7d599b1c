// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/admitkit/admitkit/internal/redact"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/review"
)

// hidden replaces a secret that cannot be compared.
const hidden = "(secret)"

// A redaction replaces the secrets in answers by pseudonyms, so that the answers can be compared with recorded ones.
type redaction struct {
	redactor *redact.Redactor
	keyID    string // of the recorder's key, or of a random key if that is not known
}

func newRedaction(keyFile string, paths []string) (*redaction, error) {
	key := redact.NewKey()
	if keyFile != "" {
		var err error
		if key, err = redact.ReadKey(keyFile); err != nil {
			return nil, err
		}
	}
	redactor, err := redact.New(key, paths)
	return &redaction{redactor, key.ID()}, err
}

// parse returns the answer of a version to a recorded call, in the form of the recorded answers. recordedKey is the ID of
// the key of the recording, or "" if the recording has no pseudonyms. If c has another key, the answer keeps its secrets, and
// its field redacted is the copy with pseudonyms.
func (c *redaction) parse(req *review.Request, call *record.Call, code int, body []byte, recordedKey string) (*answer, error) {
	plain := parse(req, call.Type, code, body)
	switch {
	case recordedKey == "":
		return plain, nil
	case plain.failure != "":
		plain.failure = c.redactor.Text(plain.failure) // the request has no secrets of which it could have copies
		return plain, nil
	}
	text, err := c.redactor.Answer(call.Request, body)
	if err != nil {
		return nil, fmt.Errorf("the secrets in the answer cannot be replaced: %w", err)
	}
	redacted := parse(req, call.Type, code, packed(text))
	if recordedKey == c.keyID {
		return redacted, nil
	}
	plain.redacted = redacted
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

// withoutSecrets replaces the secrets in before and after by hidden. It changes maps and lists in place, and returns the
// results. redacted is after with pseudonyms, so a value that differs between the two is a secret. The value of the same
// field in before is replaced as well.
func withoutSecrets(before, after, redacted any) (newBefore, newAfter any) {
	switch v := after.(type) {
	case map[string]any:
		r, same := redacted.(map[string]any)
		if !same {
			return before, after
		}
		b, _ := before.(map[string]any)
		for name := range v {
			old, found := b[name]
			if old, v[name] = withoutSecrets(old, v[name], r[name]); found {
				b[name] = old
			}
		}
	case []any:
		r, same := redacted.([]any)
		if !same || len(r) != len(v) {
			return before, after
		}
		b, _ := before.([]any)
		for i := range v {
			j := partner(b, v, i)
			if j < 0 {
				_, v[i] = withoutSecrets(nil, v[i], r[i])
				continue
			}
			b[j], v[i] = withoutSecrets(b[j], v[i], r[i])
		}
	default:
		if !reflect.DeepEqual(after, redacted) {
			if reflect.TypeOf(before) == reflect.TypeOf(after) {
				before = hidden
			}
			return before, hidden
		}
	}
	return before, after
}

// partner returns the index in before of the element that corresponds to element i of after: the element with the same name
// or, for an element without a name, the element at the same index. It returns -1 if no element corresponds.
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

// hides reports whether withoutSecrets replaced a value in a document.
func hides(document any) bool {
	switch v := document.(type) {
	case map[string]any:
		for _, member := range v {
			if hides(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hides)
	}
	return document == any(hidden)
}
