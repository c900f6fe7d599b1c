// SPDX-License-Identifier: Apache-2.0

package podtolerationrestriction

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// hooks returns the hooks for a cluster in which the namespace of the Pods, team-a, has these annotations. The
// annotations are pairs of a key and a value.
func hooks(config Config, annotations ...string) []*webhook.Hook {
	of := map[string]string{}
	for i := 0; i < len(annotations); i += 2 {
		of[annotations[i]] = annotations[i+1]
	}
	return Hooks(gallerytest.Namespaces(map[string]map[string]string{"team-a": of}), config)
}

func exists(key string) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
}

func tolerating(keys ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, key := range keys {
			p.Spec.Tolerations = append(p.Spec.Tolerations, exists(key))
		}
	}
}

func cpu(p *corev1.Pod) {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
}

func podResources(quantity string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(quantity)}}
	}
}

const (
	gpu      = `[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}]`
	pressure = corev1.TaintNodeMemoryPressure
	denial   = "pod tolerations (possibly merged with namespace default tolerations) conflict with its "
)

func TestHooks(t *testing.T) {
	cluster := Config{Default: []corev1.Toleration{exists("spot")}}
	restricted := Config{Whitelist: []corev1.Toleration{exists("gpu"), exists("spot")}}
	rows := []struct {
		reason   string
		hooks    []*webhook.Hook
		pod, old *corev1.Pod
		want     string // keys of the tolerations after the mutating hook
		denial   string // message of the mutating hook
	}{
		{"nothing is configured", hooks(Config{}), gallerytest.Pod(), nil, "", ""},
		{"the default of the namespace", hooks(cluster, DefaultAnnotation, gpu), gallerytest.Pod(), nil, "gpu", ""},
		{"the default of the cluster", hooks(cluster), gallerytest.Pod(tolerating("own")), nil, "own spot", ""},
		{"an empty annotation is not the default of the cluster", hooks(cluster, DefaultAnnotation, ""), gallerytest.Pod(), nil, "", ""},
		{"an update gets no default", hooks(cluster), gallerytest.Pod(), gallerytest.Pod(), "", ""},
		{"a toleration is not added twice", hooks(cluster), gallerytest.Pod(tolerating("spot")), nil, "spot", ""},
		{"memory pressure", hooks(Config{}), gallerytest.Pod(cpu), nil, pressure, ""},
		{"memory pressure on update", hooks(Config{}), gallerytest.Pod(cpu), gallerytest.Pod(cpu), pressure, ""},
		{"resources of the Pod", hooks(Config{}), gallerytest.Pod(podResources("1Gi")), nil, pressure, ""},
		{"resources of the Pod replace those of containers", hooks(Config{}), gallerytest.Pod(cpu, podResources("0")), nil, "", ""},
		{"the QoS class in the status", hooks(Config{}), gallerytest.Pod(func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSBurstable }), nil, pressure, ""},
		{"allowed by the cluster", hooks(restricted), gallerytest.Pod(tolerating("gpu", "spot")), nil, "gpu spot", ""},
		{"denied by the cluster", hooks(restricted), gallerytest.Pod(tolerating("gpu", "own")), nil, "", denial + "cluster whitelist"},
		{"denied by the namespace", hooks(restricted, WhitelistAnnotation, gpu), gallerytest.Pod(tolerating("spot")), nil, "", denial + "namespace whitelist"},
		{"an empty whitelist allows everything", hooks(restricted, WhitelistAnnotation, "[]"), gallerytest.Pod(tolerating("own")), nil, "own", ""},
		{"added tolerations must be allowed, too", hooks(restricted), gallerytest.Pod(cpu), nil, "", denial + "cluster whitelist"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			decision, after := gallerytest.Call(t, row.hooks[0], row.pod, row.old)
			var keys []string
			for _, toleration := range after.Spec.Tolerations {
				keys = append(keys, toleration.Key)
			}
			switch {
			case decision.Allowed != (row.denial == ""):
				t.Fatalf("allowed is %v", decision.Allowed)
			case !decision.Allowed && (decision.Result.Code != http.StatusForbidden || decision.Result.Message != row.denial):
				t.Errorf("got %d %s", decision.Result.Code, decision.Result.Message)
			case decision.Allowed && strings.Join(keys, " ") != row.want:
				t.Errorf("got %q, want %q", keys, row.want)
			}
			if len(row.pod.Spec.Tolerations) == 0 {
				return
			}
			decision, _ = gallerytest.Call(t, row.hooks[1], row.pod, row.old)
			if decision.Allowed != (row.denial == "") {
				t.Errorf("check: allowed is %v", decision.Allowed)
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	elsewhere := gallerytest.Pod(tolerating("own"), func(p *corev1.Pod) { p.Namespace = "gone" })
	for i, key := range []string{DefaultAnnotation, WhitelistAnnotation} {
		hook := hooks(Config{}, key, "{")[i]
		if got := gallerytest.Fails(t, hook, gallerytest.Pod(tolerating("own")), nil); !strings.Contains(got, "the annotation "+key+" of the namespace team-a is not valid") {
			t.Errorf("got %q", got)
		}
		decision, _ := gallerytest.Call(t, hook, elsewhere, nil)
		if decision.Allowed || decision.Result.Code != http.StatusNotFound || decision.Result.Message != `namespaces "gone" not found` {
			t.Errorf("got %+v", decision.Result)
		}
	}
}

func TestLoad(t *testing.T) {
	const head = "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\n"
	rows := []struct{ reason, content, want string }{
		{"valid", head + "default:\n- {key: spot, operator: Exists, effect: NoExecute, tolerationSeconds: 60}\nwhitelist:\n- {operator: Exists}\n- {key: gpu, value: a}\n", ""},
		{"empty", "", `FILE:1: the file is empty: begin the file with apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1 and kind: Configuration`},
		{"misspelt", head + "allowed: []\n", `FILE:3: allowed: unknown field: allowed are apiVersion, default, kind, whitelist`},
		{"key", head + "default:\n- {key: '?', operator: Exists}\n", `FILE:4: default[0].key: Invalid value: "?"`},
		{"no key", head + "whitelist:\n- {value: a}\n", `FILE:4: whitelist[0].operator: Invalid value: ""`},
		{"value", head + "whitelist:\n- {key: a, value: '?'}\n", `FILE:4: whitelist[0].operator: Invalid value: "?"`},
		{"value of Exists", head + "whitelist:\n- {key: a, operator: Exists, value: a}\n", `FILE:4: whitelist[0].operator: Invalid value: "a"`},
		{"operator", head + "whitelist:\n- {key: a, operator: Gt, value: '1'}\n", `FILE:4: whitelist[0].operator: Unsupported value: "Gt"`},
		{"seconds", head + "default:\n- {key: a, operator: Exists, tolerationSeconds: 60}\n", `FILE:4: default[0].effect: Invalid value: ""`},
		{"a default that the whitelist denies", head + "default:\n- {key: a, operator: Exists}\n- {key: b, operator: Exists}\nwhitelist:\n- {key: a, operator: Exists}\n", `FILE:5: default[1]: Invalid value: "b": the whitelist does not allow this toleration`},
		{"effect", head + "default:\n- {key: a, operator: Exists, effect: Evict}\n", `FILE:4: default[0].effect: Unsupported value: "Evict"`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tolerations.yaml")
			if err := os.WriteFile(file, []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := Load(file)
			want := strings.ReplaceAll(row.want, "FILE", file)
			switch {
			case (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want):
				t.Errorf("got %v, want %q", err, want)
			case err == nil && (len(config.Default) != 1 || len(config.Whitelist) != 2):
				t.Errorf("got %+v", config)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("want an error for a file that does not exist")
	}
}

func TestIdempotence(t *testing.T) {
	set := func() *webhook.Hook { return hooks(Config{}, DefaultAnnotation, gpu)[0] }
	gallerytest.Idempotent(t, set, gallerytest.Pod(), gallerytest.Pod(cpu), gallerytest.Pod(tolerating("own")))
}
