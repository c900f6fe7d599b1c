// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
)

// A reason is the purpose of a table row, and the source line of the row.
type reason struct{ text, at string }

// because returns the reason of the row that calls it.
func because(text string) reason {
	_, file, line, _ := runtime.Caller(1)
	return reason{text, fmt.Sprintf("%s:%d", filepath.Base(file), line)}
}

// run runs the test of a row. A row without a reason fails.
func (r reason) run(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if r.text == "" {
		t.Fatal("a row has no reason")
	}
	t.Run(r.text, func(t *testing.T) {
		defer func() {
			if t.Failed() {
				t.Log("the row is at " + r.at)
			}
		}()
		test(t)
	})
}

// show prints a request with its documents as text. Nil and empty documents differ.
func show(r *Request) string {
	if r == nil {
		return "nil"
	}
	text, err := json.MarshalIndent(struct {
		Version Version
		Metadata
		Object, OldObject, Options string
	}{r.Version, r.Metadata, quote(r.Object), quote(r.OldObject), quote(r.Options)}, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func quote(raw []byte) string {
	if raw == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", raw)
}
