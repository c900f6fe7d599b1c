// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestPathJSON(t *testing.T) {
	for want, p := range map[string]Path{
		`[]`: {},
		`["spec","containers",{"element":"name=web"},"image"]`:       Path{{Name: "spec"}, {Name: "containers"}}.Element("name=web", 0).Member("image"),
		`["metadata","annotations","example.com/a[0]"]`:              {{Name: "metadata"}, {Name: "annotations"}, {Name: "example.com/a[0]"}},
		`["spec","containers",{"element":"name=a.b","nth":1},"env"]`: Path{{Name: "spec"}, {Name: "containers"}}.Element("name=a.b", 1).Member("env"),
	} {
		text, err := json.Marshal(p)
		if err != nil || string(text) != want {
			t.Errorf("%s: %s, %v, want %s", p, text, err, want)
		}
		var back Path
		if err := json.Unmarshal(text, &back); err != nil || !slices.Equal(back, p) {
			t.Errorf("%s comes back as %v, %v", text, back, err)
		}
	}
	for _, bad := range []string{`{}`, `[1]`, `["a",[]]`, `x`} {
		var p Path
		if err := json.Unmarshal([]byte(bad), &p); err == nil {
			t.Errorf("%s is read as %s", bad, p)
		}
	}
}
