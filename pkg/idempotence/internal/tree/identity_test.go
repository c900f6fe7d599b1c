// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"testing"
)

func list(name string) Path { return Path{{Name: "spec"}, {Name: name}} }

func TestIdentity(t *testing.T) {
	for _, tc := range []struct {
		in, element, want string
	}{
		{"containers", `{"name":"web","image":"a"}`, "name=web"},
		{"volumeMounts", `{"name":"data","mountPath":"/data"}`, "mountPath=/data"},
		{"ports", `{"containerPort":80}`, "containerPort=80,protocol=TCP"},
		{"ports", `{"containerPort":80,"protocol":"TCP","name":"http"}`, "containerPort=80,protocol=TCP"},
		{"ports", `{"containerPort":53,"protocol":"UDP"}`, "containerPort=53,protocol=UDP"},
		{"ports", `{"port":443,"targetPort":8443}`, "port=443,protocol=TCP"},
		{"ports", `{"name":"web","number":80}`, "name=web"},
		{"ports", `{"number":80}`, `{"number":80}`},
		{"ports", `80`, "80"},
		{"tolerations", `{"key":"a","effect":"NoSchedule"}`, `{"effect":"NoSchedule","key":"a"}`},
		{"rules", `{"host":"a"}`, `{"host":"a"}`},
		{"rules", `{"name":"first","host":"a"}`, "name=first"},
		{"volumeClaimTemplates", `{"metadata":{"name":"data"},"spec":{}}`, "metadata.name=data"},
		{"conditions", `{"type":"Ready","status":"True"}`, "type=Ready"},
		{"args", `"-v"`, `"-v"`},
	} {
		element, err := Decode([]byte(tc.element))
		if err != nil {
			t.Fatal(err)
		}
		if got := Identity(list(tc.in), element); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.in, tc.element, got, tc.want)
		}
	}
}

// TestDuplicateNamesIdentifyNothing compares lists with duplicate names. In a list without known keys, such a name
// identifies no element. If its elements change places, they must count as moved, not as changed.
func TestDuplicateNamesIdentifyNothing(t *testing.T) {
	const a, b = `{"name":"db","zone":"a"}`, `{"name":"db","zone":"b"}`
	for _, tc := range []struct{ from, to, want string }{
		{`{"spec":{"targets":[` + a + `,` + b + `]}}`, `{"spec":{"targets":[` + b + `,` + a + `]}}`, "moved spec.targets"},
		{`{"spec":{"targets":[` + a + `]}}`, `{"spec":{"targets":[` + b + `]}}`, "replaced spec.targets[name=db].zone"},
		{`{"spec":{"env":[` + a + `,` + b + `]}}`, `{"spec":{"env":[` + b + `,` + a + `]}}`, "replaced spec.env[name=db].zone replaced spec.env[name=db#2].zone"},
		{`{"spec":{"ports":[{"port":80}]}}`, `{"spec":{"ports":[{"port":80,"protocol":"TCP"}]}}`, "added spec.ports[port=80,protocol=TCP].protocol"},
	} {
		x, err := Decode([]byte(tc.from))
		y, err2 := Decode([]byte(tc.to))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		got := ""
		for i, c := range Changes(x, y) {
			if i > 0 {
				got += " "
			}
			got += string(c.Kind) + " " + c.Path.String()
		}
		if got != tc.want {
			t.Errorf("%s → %s: %s, want %s", tc.from, tc.to, got, tc.want)
		}
	}
}

func TestLeadsTo(t *testing.T) {
	volumes := list("volumes")
	for _, tc := range []struct {
		at      Path
		pattern string
		want    bool
	}{
		{volumes, "spec.volumes[name=legacy]", true},
		{volumes, "spec.volumes[*].emptyDir", true},
		{volumes, "spec.volumes", false}, // it is the path itself
		{volumes, "spec.containers.image", false},
		{volumes[:1], "spec.volumes[name=legacy]", true},
		{list("containers").Element("name=web", 0), "spec.containers.image", true},
		{list("containers").Element("name=web", 0), "spec.containers[name=web].image", true},
		{list("containers"), "spec.containers.image", true},
		{nil, "metadata", true},
	} {
		if got := tc.at.LeadsTo(tc.pattern); got != tc.want {
			t.Errorf("%s leads to %s: %v", tc.at, tc.pattern, got)
		}
	}
}
