// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	fixtures "k8s.io/pod-security-admission/test"
	"sigs.k8s.io/yaml"
)

// TestPodSecurityFixtures sends the fixtures of k8s.io/pod-security-admission to the original and to the hooks: for each
// level, version and check there are Pods that pass and Pods that fail. Each is sent as a Pod and as the template of a
// workload, in a namespace with this level and version.
func TestPodSecurityFixtures(t *testing.T) {
	c := securityControllers()[0]
	c.configurations = nil
	var files []string
	var namespaces []kruntime.Object
	for _, level := range []string{"baseline", "restricted"} {
		versions, err := filepath.Glob(filepath.Join(fixtureFolder(), level, "v1.*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range versions {
			version := filepath.Base(folder)
			namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: level + "-" + version, Labels: securityLabel("enforce", level, "enforce-version", version, "audit", level, "audit-version", version),
			}})
			pods, err := filepath.Glob(filepath.Join(folder, "*", "*.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, pods...)
		}
	}
	if len(files) < 4000 {
		t.Fatalf("found only %d fixtures in %s", len(files), fixtureFolder())
	}
	c.clusters = [][]kruntime.Object{namespaces}
	v, count := c.start(t, nil)[0], &tally{}
	for i, file := range files {
		sendFixture(t, c, v, file, i, count)
	}
	t.Logf("%d fixtures: %d/%d results equal; the original denied %d", len(files), count.equal, count.total, count.denied)
}

// sendFixture sends a fixture to the original and to the hooks. The argument number selects the kind of the workload.
func sendFixture(t *testing.T, c *controller, v *variant, file string, number int, count *tally) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(filepath.ToSlash(file), "/")
	level, version, verdict := parts[len(parts)-4], parts[len(parts)-3], parts[len(parts)-2]
	pod.Namespace = fmt.Sprintf("%s-%s", level, version)
	before := count.denied
	compare(t, c, v, onPods(admission.Create, "", pod, nil).encoded(t), false, file, count)
	if denies := count.denied > before; denies != (verdict == "fail") {
		t.Errorf("%s: whether the original denies the Pod is %v", file, denies)
	}
	kinds := workloadsOf(pod)
	compare(t, c, v, kinds[number%len(kinds)].encoded(t), false, file, count)
}

// fixtureFolder returns the folder of the fixtures, which are part of the module.
func fixtureFolder() string {
	f := runtime.FuncForPC(reflect.ValueOf(fixtures.GetMinimalValidPod).Pointer())
	file, _ := f.FileLine(f.Entry())
	return filepath.Join(filepath.Dir(file), "testdata")
}
