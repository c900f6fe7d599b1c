// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	apiv1 "github.com/admitkit/admitkit/hack/bench/api/v1"
)

// database returns a Database with this many users.
func database(users int) *apiv1.Database {
	d := &apiv1.Database{
		TypeMeta: metav1.TypeMeta{APIVersion: apiv1.GroupVersion.String(), Kind: "Database"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "orders", Namespace: "shop", UID: "8b0c6d3e-4a57-4d0c-9d0e-2f1f7c1b9a55", CreationTimestamp: created, Generation: 1,
			Labels:      map[string]string{"app.kubernetes.io/name": "orders", "app.kubernetes.io/part-of": "shop"},
			Annotations: map[string]string{"example.com/note": `owner <shop@example.com> & "friends"`},
		},
		Spec: apiv1.DatabaseSpec{
			Image: "registry.example.com/db/server:17.2", Replicas: new(int32(3)),
			Storage: apiv1.Storage{Size: resource.MustParse("200Gi"), StorageClassName: new("fast")},
			Resources: corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{"memory": resource.MustParse("8Gi")},
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("8Gi")},
			},
			Parameters:     map[string]string{"max_connections": "200", "shared_buffers": "2GB", "log_line_prefix": "%m <%u@%d>"},
			MaxUnavailable: new(intstr.FromInt32(1)),
			Backups: []apiv1.Backup{
				{Name: "nightly", Schedule: "0 3 * * *", Retention: metav1.Duration{Duration: 30 * 24 * time.Hour}, Bucket: "s3://backups/orders"},
			},
		},
	}
	if users > 1 {
		d.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: "Equal", Value: "db", Effect: "NoSchedule", TolerationSeconds: new(int64(300))}}
		d.Spec.NodeSelector = map[string]string{"disk": "nvme"}
	}
	for i := range users {
		d.Spec.Users = append(d.Spec.Users, user(i))
	}
	return d
}

func user(i int) apiv1.User {
	return apiv1.User{
		Name: fmt.Sprintf("user-%d", i), Databases: []string{"orders", "invoices"},
		Grants: []apiv1.Grant{
			{On: "orders.public", Privileges: []string{"SELECT", "INSERT", "UPDATE"}},
			{On: "invoices.public", Privileges: []string{"SELECT"}},
		},
		PasswordFrom:    &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("user-%d", i)}, Key: "password"},
		ConnectionLimit: new(int32(20)), ValidUntil: new(created), Labels: map[string]string{"team": "shop"},
	}
}

// Database returns a custom resource that is about as large as the Pod of this size. Like
// the output of an API server, its JSON has sorted names.
func (s Size) Database() []byte {
	var tree map[string]any
	mustDecode(MustEncode(database(s.users)), &tree)
	if s.users > 1 {
		set := owned(tree, "")
		for _, unowned := range []string{"f:apiVersion", "f:kind", "f:status"} {
			delete(set, unowned)
		}
		tree["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{
			"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": apiv1.GroupVersion.String(),
			"time": created.UTC().Format(time.RFC3339), "fieldsType": "FieldsV1", "fieldsV1": set,
		}}
	}
	delete(tree, "status")
	return MustEncode(tree)
}

// DatabaseReview returns an AdmissionReview of a Database, like [PodReview] for a Pod.
func DatabaseReview(object, old []byte) []byte {
	return review(metav1.GroupVersionKind{Group: apiv1.GroupVersion.Group, Version: "v1", Kind: "Database"},
		metav1.GroupVersionResource{Group: apiv1.GroupVersion.Group, Version: "v1", Resource: "databases"}, object, old)
}
