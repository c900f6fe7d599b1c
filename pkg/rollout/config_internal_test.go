// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzParse requires that parse never panics, and that a valid configuration can be encoded and parsed again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("hooks: [{webhook: images.example.com, mode: Shadow, rules: [{percent: 10, of: Owners, mode: Warn}]}]"))
	f.Add([]byte("hooks: [{webhook: images.example.com, namespaceLabels: a.b, version: v3, rules: [{namespaces: {matchLabels: {a: b}}, mode: Enforce}]}]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		names := []string{"images.example.com"}
		config, err := parse(content, names)
		if (config == nil) != (err != nil) {
			t.Fatalf("got %v, %v", config, err)
		}
		if err != nil {
			return
		}
		written := write(t, config)
		again, err := parse(written, names)
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if text := write(t, again); !bytes.Equal(text, written) {
			t.Errorf("wrote\n%s\nand then\n%s", written, text)
		}
	})
}

func write(t *testing.T, config *Config) []byte {
	t.Helper()
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
