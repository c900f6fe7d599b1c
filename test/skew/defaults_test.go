// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/examples/testcluster"
)

const template = `{metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: example.com/app, ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: 80}}}], volumes: [{name: v, emptyDir: {}}, {name: p, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}}`

// sparse has one object of each kind, with the required fields only.
var sparse = []string{
	`{apiVersion: v1, kind: Pod, spec: {containers: [{name: app, image: example.com/app}]}}`,
	`{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: ` + template + `}}`,
	`{apiVersion: apps/v1, kind: StatefulSet, spec: {serviceName: s, selector: {matchLabels: {a: b}}, template: ` + template + `, volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`,
	`{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchLabels: {a: b}}, template: ` + template + `}}`,
	`{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: example.com/app}]}}}}`,
	`{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: example.com/app}]}}}}}}`,
	`{apiVersion: v1, kind: Service, spec: {clusterIP: None, ports: [{port: 80}], selector: {a: b}}}`,
	`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
	`{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}`,
	`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}, ingress: [{ports: [{port: 80}]}]}}`,
	`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}}`,
	`{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}`,
	`{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}`,
	`{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: example.com/p}`,
	`{apiVersion: storage.k8s.io/v1, kind: CSIDriver, spec: {}}`,
	`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 5}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: ServiceAccount, name: s, namespace: default}]}`,
	`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [{name: a.b.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://localhost"}, rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}]}`,
}

// newDefaults lists the fields that the newest release sets and the one before does not.
var newDefaults = []string{
	"CSIDriver spec.preventPodSchedulingIfMissing false",
	"HorizontalPodAutoscaler metadata.generation 1",
	"StatefulSet spec.updateStrategy.rollingUpdate.maxUnavailable 1",
}

// TestDefaults compares the defaults of the API servers.
func TestDefaults(t *testing.T) {
	c := start(t)
	var added []string
	for _, text := range sparse {
		older, newer := defaulted(t, c.older, text), defaulted(t, c.newer, text)
		kind := newer["kind"].(string)
		from, to := map[string]string{}, map[string]string{}
		leaves(from, kind+" ", older)
		leaves(to, kind+" ", newer)
		for path, value := range to {
			if _, had := from[path]; !had {
				added = append(added, path+" "+value)
				delete(to, path)
			}
		}
		if diff := cmp.Diff(from, to); diff != "" {
			t.Errorf("a default was changed or removed (- older + newer):\n%s", diff)
		}
	}
	slices.Sort(added)
	if diff := cmp.Diff(newDefaults, added); diff != "" {
		t.Errorf("the new defaults are not those of the test:\n%s", diff)
	}
}

// leaves adds the values in a JSON document to all, by path.
func leaves(all map[string]string, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			leaves(all, strings.TrimPrefix(path+"."+name, "."), inner)
		}
	case []any:
		for i, inner := range value {
			leaves(all, fmt.Sprintf("%s[%d]", path, i), inner)
		}
	default:
		all[strings.Replace(path, " .", " ", 1)] = drawn.ReplaceAllString(fmt.Sprint(value), "UID")
	}
}

// drawn matches the random identifiers in a Job.
var drawn = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// defaulted returns an object with the defaults of an API server.
func defaulted(t *testing.T, of *testcluster.Cluster, text string) map[string]any {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetName("sparse")
	if mapping, err := of.Client.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version); err != nil {
		t.Fatal(err)
	} else if mapping.Scope.Name() == "namespace" {
		object.SetNamespace("default")
	}
	if err := of.Client.Create(t.Context(), object, client.DryRunAll); err != nil {
		t.Fatalf("%s: %v", object.GetKind(), err)
	}
	object.SetManagedFields(nil)
	object.SetUID("")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object.Object, "metadata", "resourceVersion")
	return object.Object
}
