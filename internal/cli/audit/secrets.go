// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/admitkit/admitkit/pkg/patch"
)

var (
	// secretShapes match texts that are secrets under any name.
	secretShapes = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[0-9A-Za-z]{36,}|\bgithub_pat_[0-9A-Za-z_]{40,}|\bxox[abpr]-[0-9A-Za-z-]{10,}|\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}|://[^/\s:@"]+:[^/\s:@"$]+@`)
	})
	// secretNames match names of environment variables with secrets.
	secretNames = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|_)(password|passwd|passphrase|secret|secret_?key|token|api_?key|private_?key|access_?key)$`)
	})
)

// secret returns the reason why the value of an operation looks like a secret, or "".
func (q *request) secret(op patch.Operation) string {
	if len(op.Value) == 0 || op.Op == patch.Test {
		return ""
	}
	if q.object.resource == "secrets" && q.object.group == "" && q.object.subresource == "" {
		for _, data := range []patch.Pointer{"/data", "/stringData"} {
			if op.Path.Contains(data) || data.Contains(op.Path) {
				return "data of a Secret"
			}
		}
	}
	if secretShapes().Match(op.Value) {
		return "a key, a token or a password in a URL"
	}
	var value any
	if json.Unmarshal(op.Value, &value) == nil && variable(value) {
		return "an environment variable with a secret"
	}
	return ""
}

// variable reports whether value contains an environment variable that has the name of a secret and a literal value.
func variable(value any) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, variable)
	case map[string]any:
		name, _ := v["name"].(string)
		own, _ := v["value"].(string)
		if secretNames().MatchString(name) && worthHiding(own) {
			return true
		}
		for _, inner := range v {
			if variable(inner) {
				return true
			}
		}
	}
	return false
}

// worthHiding reports whether a text may be a secret, and not a path, a reference or a boolean.
func worthHiding(value string) bool {
	switch strings.ToLower(value) {
	case "", "true", "false", "none", "disabled", "enabled":
		return false
	}
	return !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "$(") && !strings.Contains(value, "://")
}
