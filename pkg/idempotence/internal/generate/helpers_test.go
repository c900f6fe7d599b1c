// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"math/rand/v2"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func generator(t reflect.Type) *Generator {
	return &Generator{Schema: ForType(t), Namespace: "default"}
}

// builtIn lists the built-in types for which the package has rules. Types with Pods come first.
var builtIn = []reflect.Type{
	reflect.TypeFor[corev1.Pod](), reflect.TypeFor[appsv1.Deployment](), reflect.TypeFor[batchv1.Job](), reflect.TypeFor[batchv1.CronJob](),
	reflect.TypeFor[appsv1.ReplicaSet](), reflect.TypeFor[appsv1.DaemonSet](), reflect.TypeFor[appsv1.StatefulSet](),
	reflect.TypeFor[corev1.ReplicationController](), reflect.TypeFor[corev1.PodTemplate](),
	reflect.TypeFor[corev1.ConfigMap](), reflect.TypeFor[corev1.Secret](), reflect.TypeFor[corev1.ServiceAccount](),
	reflect.TypeFor[corev1.Namespace](), reflect.TypeFor[corev1.Service](), reflect.TypeFor[corev1.PersistentVolumeClaim](),
	reflect.TypeFor[networkingv1.Ingress](),
}

// decodeStrictly decodes o into a value of the type. It fails the test if a field of o is unknown or has another type.
func decodeStrictly(t *testing.T, typ reflect.Type, o object) any {
	t.Helper()
	v := reflect.New(typ).Interface()
	strict, err := kjson.UnmarshalStrict(tree.Encode(o), v)
	if err != nil || len(strict) > 0 {
		t.Fatalf("%s: %v %v\n%s", typ, err, strict, tree.Encode(o))
	}
	return v
}

// twice returns the path of a list in which two elements have the same keys, or "". It ignores
// environment variables, which may repeat.
func twice(s *Schema, v any) (found string) {
	tree.Lists(v, func(p tree.Path, list []any) {
		n := s.at(p)
		if n == nil || p.Last() == "env" {
			return
		}
		for i, e := range list {
			if n.holds(list[:i], e) {
				found = p.String() + ": " + n.identity(e)
			}
		}
	})
	return found
}
