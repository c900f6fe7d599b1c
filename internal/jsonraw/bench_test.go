// SPDX-License-Identifier: Apache-2.0

package jsonraw

import (
	"encoding/json"
	"strings"
	"testing"
)

// BenchmarkSkip measures how fast Skip checks a document that looks like a Pod.
func BenchmarkSkip(b *testing.B) {
	container := `{"name":"app","image":"registry.example.com/team/app:v1.2.3","args":["--port=8080","--verbose"],` +
		`"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"resources":{"limits":{"cpu":"500m","memory":"128Mi"}},` +
		`"volumeMounts":[{"name":"config","mountPath":"/etc/app","readOnly":true}],"imagePullPolicy":"IfNotPresent"}`
	doc := []byte(`{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"containers":[` +
		strings.Repeat(container+",", 9) + container + `]}}`)
	b.Run("cursor", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			if err := NewCursor(doc).Skip(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			if !json.Valid(doc) {
				b.Fatal("not valid")
			}
		}
	})
}
