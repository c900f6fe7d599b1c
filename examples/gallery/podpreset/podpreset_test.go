// SPDX-License-Identifier: Apache-2.0

package podpreset

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const database = `
- apiVersion: settings.k8s.io/v1alpha1
  kind: PodPreset
  metadata: {namespace: team-a, name: database}
  spec:
    selector: {matchLabels: {role: frontend}}
    env:
    - {name: DB_PORT, value: "6379"}
    - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    envFrom:
    - {configMapRef: {name: database}}
    volumes:
    - {name: cache, emptyDir: {}}
    - {name: settings, configMap: {name: database}}
    volumeMounts:
    - {name: cache, mountPath: /cache}
    - {name: settings, mountPath: /settings, readOnly: true}
- apiVersion: settings.k8s.io/v1alpha1
  kind: PodPreset
  metadata: {namespace: team-b, name: everything}
  spec:
    env: [{name: TEAM, value: b}]
`

// frontend returns a Pod that the first preset selects.
func frontend(changes ...func(*corev1.Pod)) *corev1.Pod {
	return gallerytest.Pod(append([]func(*corev1.Pod){func(p *corev1.Pod) { p.Labels = map[string]string{"role": "frontend"} }}, changes...)...)
}

func load(t *testing.T, content string) []Preset {
	t.Helper()
	presets, err := Load(write(t, content))
	if err != nil {
		t.Fatal(err)
	}
	return presets
}

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "presets.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPodGetsItsPreset(t *testing.T) {
	t.Parallel()
	hook := Hook(load(t, database))
	pod := frontend(func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "setup"}}
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OWN", Value: "a"}, {Name: "DB_PORT", Value: "6379"}}
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{Prefix: "own"}}
		p.Spec.Volumes = []corev1.Volume{{Name: "own"}, {Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{ // DefaultMode is the API server's default
			LocalObjectReference: corev1.LocalObjectReference{Name: "database"}, DefaultMode: ptr.To[int32](420),
		}}}}
	})
	decision, after := gallerytest.Call(t, hook, pod, nil)
	gallerytest.Denied(t, decision, "")
	var volumes []string
	for _, v := range after.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	if got := strings.Join(volumes, " "); got != "own settings cache" {
		t.Errorf("volumes: got %s", got)
	}
	for _, row := range []struct {
		container corev1.Container
		want      string
	}{
		{after.Spec.InitContainers[0], "DB_PORT POD database /cache /settings"},
		{after.Spec.Containers[0], "OWN DB_PORT POD own database /cache /settings"},
	} {
		if got := parts(row.container); got != row.want {
			t.Errorf("container %s: got %s", row.container.Name, got)
		}
	}
	if got := after.Annotations[AppliedPrefix+"database"]; len(after.Annotations) != 1 || len(got) != 16 {
		t.Errorf("annotations: got %v", after.Annotations)
	}
}

// parts returns the names of the parts that a preset can add to a container, separated by spaces.
func parts(c corev1.Container) string {
	var all []string
	for _, e := range c.Env {
		all = append(all, e.Name)
	}
	for _, e := range c.EnvFrom {
		if name := e.Prefix; e.ConfigMapRef != nil {
			all = append(all, e.ConfigMapRef.Name)
		} else {
			all = append(all, name)
		}
	}
	for _, m := range c.VolumeMounts {
		all = append(all, m.MountPath)
	}
	return strings.Join(all, " ")
}

func TestOtherPodsAreNotChanged(t *testing.T) {
	t.Parallel()
	for name, pod := range map[string]*corev1.Pod{
		"no label":          gallerytest.Pod(),
		"another namespace": frontend(func(p *corev1.Pod) { p.Namespace = "team-c" }),
		"excluded":          frontend(func(p *corev1.Pod) { p.Annotations = map[string]string{ExcludeAnnotation: "true"} }),
		"a mirror Pod":      frontend(func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "a"} }),
	} {
		if decision, _ := gallerytest.Call(t, Hook(load(t, database)), pod, nil); !decision.Allowed || decision.Patch != nil || len(decision.Warnings) > 0 {
			t.Errorf("%s: got %+v", name, decision)
		}
	}
}

// TestConflicts checks that a Pod with a conflict is not changed, and that the conflict is logged and sent to the user
// as a warning.
func TestConflicts(t *testing.T) {
	t.Parallel()
	own := corev1.VolumeMount{Name: "own", MountPath: "/cache/"}
	rows := map[string]func(*corev1.Pod){
		"environment variable DB_PORT of container app": func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DB_PORT", Value: "1"}} },
		"environment variable POD of container app": func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "POD"}}
		},
		"volume cache": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}
		},
		"mount of cache at /cache in container app": func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{own} },
		"mount of cache at /cache in container setup": func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "setup", VolumeDevices: []corev1.VolumeDevice{{Name: "disk", DevicePath: "/cache"}}}}
		},
		"mount of settings at /settings in container app": func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "settings", MountPath: "/other"}}
		},
	}
	for where, change := range rows {
		var log bytes.Buffer
		hook := Hook(load(t, database)).WithLogger(logr.FromSlogHandler(slog.NewTextHandler(&log, nil)))
		decision, _ := gallerytest.Call(t, hook, frontend(change), nil)
		want := "the presets of this Pod are not applied: preset database conflicts with " + where
		if !decision.Allowed || decision.Patch != nil || strings.Join(decision.Warnings, " ") != want {
			t.Errorf("%s: got %+v", where, decision)
		}
		if !strings.Contains(log.String(), "preset database conflicts with "+where) {
			t.Errorf("%s: the log is %s", where, log.String())
		}
	}
}

// TestPresetsConflict checks that no preset is applied if two of them conflict.
func TestPresetsConflict(t *testing.T) {
	t.Parallel()
	presets := load(t, database)
	other := presets[0]
	other.Name, other.Spec.Env, other.Spec.Volumes, other.Spec.VolumeMounts = "other", []corev1.EnvVar{{Name: "DB_PORT", Value: "1"}}, nil, nil
	decision, _ := gallerytest.Call(t, Hook(append(presets, other)), frontend(), nil)
	if !decision.Allowed || decision.Patch != nil || len(decision.Warnings) != 1 || !strings.Contains(decision.Warnings[0], "preset other conflicts with environment variable DB_PORT of container app") {
		t.Errorf("got %+v", decision)
	}
}

func TestBadSelectorFails(t *testing.T) {
	t.Parallel()
	bad := Preset{Spec: Spec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"?": ""}}}}
	if got := gallerytest.Fails(t, Hook([]Preset{bad}), frontend(), nil); !strings.Contains(got, `is not valid: key: Invalid value: "?"`) {
		t.Errorf("got %s", got)
	}
}

// TestDefaults checks that a second call recognizes volumes and variables to which the API server has added defaults.
func TestDefaults(t *testing.T) {
	t.Parallel()
	field := &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}
	files := []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: field}}
	spec := Spec{Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: field}}}}
	for _, source := range []corev1.VolumeSource{
		{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}, {ConfigMap: &corev1.ConfigMapVolumeSource{}}, {Secret: &corev1.SecretVolumeSource{}},
		{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: files}}, {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: files}}, {ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}},
	} {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: string(rune('a' + len(spec.Volumes))), VolumeSource: source})
	}
	preset := withDefaults([]Preset{{Spec: spec}})[0]
	if field.APIVersion != "" {
		t.Error("the preset itself has changed")
	}
	if got := preset.Spec.Env[0].ValueFrom.FieldRef.APIVersion; got != "v1" {
		t.Errorf("variable: got %s", got)
	}
	v := preset.Spec.Volumes
	projected := v[4].Projected
	for i, mode := range []*int32{v[1].ConfigMap.DefaultMode, v[2].Secret.DefaultMode, v[3].DownwardAPI.DefaultMode, projected.DefaultMode} {
		if ptr.Deref(mode, 0) != 0o644 {
			t.Errorf("volume %d: got %v", i, mode)
		}
	}
	if v[0].HostPath.Type == nil || v[3].DownwardAPI.Items[0].FieldRef.APIVersion != "v1" || projected.Sources[0].DownwardAPI.Items[0].FieldRef.APIVersion != "v1" ||
		ptr.Deref(projected.Sources[1].ServiceAccountToken.ExpirationSeconds, 0) != 3600 {
		t.Errorf("got %+v", v)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	const head = "- apiVersion: settings.k8s.io/v1alpha1\n  kind: PodPreset\n  metadata: {namespace: team-a, name: a}\n  spec: "
	rows := []struct{ reason, content, want string }{
		{"valid", database, ""},
		{"no presets", "[]", ""},
		{"empty", "# nothing\n", "FILE:1: the file is empty: must be a list"},
		{"misspelt", head + "{environment: []}", `FILE:4: [0].spec.environment: unknown field: allowed are env, envFrom, selector, volumeMounts, volumes`},
		{"not a list", "apiVersion: v1", "FILE:1: must be a list, not a map"},
		{"version", strings.Replace(head, "v1alpha1", "v1", 1) + "{env: [{name: A}]}", `FILE:1: [0].apiVersion: Unsupported value: "settings.k8s.io/v1"`},
		{"kind", strings.Replace(head, "PodPreset", "Preset", 1) + "{env: [{name: A}]}", `FILE:2: [0].kind: Unsupported value: "Preset"`},
		{"namespace", strings.Replace(head, "namespace: team-a, ", "", 1) + "{env: [{name: A}]}", `FILE:3: [0].metadata.namespace: Required value`},
		{"name", strings.Replace(head, "name: a", `name: "a b"`, 1) + "{env: [{name: A}]}", `FILE:3: [0].metadata.name: Invalid value: "a b"`},
		{"twice", head + "{env: [{name: A}]}\n" + head + "{env: [{name: A}]}", `FILE:7: [1].metadata.name: Duplicate value: "a"`},
		{"not a namespace", strings.Replace(head, "team-a", "Team A", 1) + "{env: [{name: A}]}", `FILE:3: [0].metadata.namespace: Invalid value: "Team A"`},
		{"another case", head + "{envfrom: []}", `FILE:4: [0].spec.envfrom: unknown field: did you mean envFrom?`},
		{"selector", head + `{selector: {matchLabels: {"?": a}}, env: [{name: A}]}`, `FILE:4: [0].spec.selector.matchLabels: Invalid value: "?"`},
		{"nothing", head + "{}", `FILE:4: [0].spec: Required value: a preset needs env, envFrom, volumes or volumeMounts`},
		{"variable", head + `{env: [{name: "="}]}`, `FILE:4: [0].spec.env[0].name: Invalid value: "="`},
		{"variables", head + `{env: [{name: A}, {name: A}]}`, `FILE:4: [0].spec.env[1].name: Duplicate value: "A"`},
		{"volume", head + `{volumes: [{name: "?", emptyDir: {}}]}`, `FILE:4: [0].spec.volumes[0].name: Invalid value: "?"`},
		{"source", head + `{volumes: [{name: a}]}`, `FILE:4: [0].spec.volumes[0]: Required value: a volume needs a source`},
		{"mount", head + `{volumeMounts: [{name: a, mountPath: /a}]}`, `FILE:4: [0].spec.volumeMounts[0].name: Not found: "a"`},
		{"path", head + `{volumes: [{name: a, emptyDir: {}}], volumeMounts: [{name: a}]}`, `FILE:4: [0].spec.volumeMounts[0].mountPath: Required value`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			file := write(t, row.content)
			_, err := Load(file)
			if want := strings.ReplaceAll(row.want, "FILE", file); (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("want an error for a file that does not exist")
	}
}

func TestContradictions(t *testing.T) {
	t.Parallel()
	preset := func(name, spec string) string {
		return "- apiVersion: settings.k8s.io/v1alpha1\n  kind: PodPreset\n  metadata: {namespace: team-a, name: " + name + "}\n  spec: " + spec + "\n"
	}
	const one, two = "env: [{name: A, value: '1'}]", "env: [{name: B}, {name: A, value: '2'}]"
	const volume = "volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /v}]"
	rows := []struct{ reason, first, second, want string }{
		{"all Pods", "{" + one + "}", "{" + two + "}", "environment variable A"},
		{"one label", "{" + one + "}", "{selector: {matchLabels: {a: b}}, " + two + "}", "environment variable A"},
		{"different labels", "{selector: {matchLabels: {a: b}}, " + one + "}", "{selector: {matchLabels: {c: d}}, " + two + "}", "environment variable A"},
		{"different values of a label", "{selector: {matchLabels: {a: b}}, " + one + "}", "{selector: {matchLabels: {a: c}}, " + two + "}", ""},
		{"values that overlap", "{selector: {matchExpressions: [{key: a, operator: In, values: [b, c]}]}, " + one + "}", "{selector: {matchLabels: {a: c}}, " + two + "}", "environment variable A"},
		{"an excluded value", "{selector: {matchExpressions: [{key: a, operator: NotIn, values: [b, c]}]}, " + one + "}", "{selector: {matchLabels: {a: c}}, " + two + "}", ""},
		{"another excluded value", "{selector: {matchExpressions: [{key: a, operator: NotIn, values: [b]}]}, " + one + "}", "{selector: {matchLabels: {a: c}}, " + two + "}", "environment variable A"},
		{"with and without a label", "{selector: {matchExpressions: [{key: a, operator: Exists}]}, " + one + "}", "{selector: {matchExpressions: [{key: a, operator: DoesNotExist}]}, " + two + "}", ""},
		{"equal variables", "{" + one + "}", "{" + one + "}", ""},
		{"another volume", "{" + volume + "}", "{volumes: [{name: v, hostPath: {path: /v}}]}", "volume v"},
		{"the same volume", "{" + volume + "}", "{" + volume + "}", ""},
		{"the same path", "{" + volume + "}", "{volumes: [{name: w, emptyDir: {}}], volumeMounts: [{name: w, mountPath: /v/}]}", "mount of w at /v/"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			file, got, want := write(t, preset("a", row.first)+preset("b", row.second)), "", ""
			if _, err := Load(file); err != nil {
				got = err.Error()
			}
			if row.want != "" {
				want = file + `:8: [1].spec: Invalid value: "b": conflicts with [0], a: ` + row.want + ": a Pod that both select would get neither: change one, or its selector"
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	elsewhere := strings.Replace(preset("b", "{"+two+"}"), "team-a", "team-b", 1)
	if _, err := Load(write(t, preset("a", "{"+one+"}")+elsewhere)); err != nil {
		t.Error(err)
	}
}

func TestIdempotent(t *testing.T) {
	t.Parallel()
	presets := load(t, database)
	gallerytest.Idempotent(t, func() *webhook.Hook { return Hook(presets).WithLogger(logr.New(nil)) },
		frontend(), frontend(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "a"}} }),
		frontend(func(p *corev1.Pod) { p.Spec.Volumes = load(t, database)[0].Spec.Volumes[:1] }))
}
