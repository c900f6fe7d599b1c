// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	originalresize "k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"
	originalstorageclass "k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault"
	originalprotection "k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/defaultstorageclass"
	"github.com/admitkit/admitkit/examples/gallery/persistentvolumeclaimresize"
	"github.com/admitkit/admitkit/examples/gallery/storageobjectinuseprotection"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func storageControllers() []*controller {
	return []*controller{{
		name: originalstorageclass.PluginName, register: originalstorageclass.Register, clusters: storageClasses(),
		hooks: func(_ *testing.T, in cluster, _ string) []*webhook.Hook {
			return []*webhook.Hook{defaultstorageclass.Hook(in.factory.Storage().V1().StorageClasses().Lister())}
		},
		edges: (*generator).claimEdges, generate: (*generator).claimRequest,
	}, {
		name: originalresize.PluginName, register: originalresize.Register, clusters: storageClasses(),
		hooks: func(_ *testing.T, in cluster, _ string) []*webhook.Hook {
			return []*webhook.Hook{persistentvolumeclaimresize.Hook(in.factory.Storage().V1().StorageClasses().Lister())}
		},
		edges: (*generator).claimEdges, generate: (*generator).claimRequest,
	}, {
		name: originalprotection.PluginName, register: originalprotection.Register,
		hooks: func(*testing.T, cluster, string) []*webhook.Hook {
			return []*webhook.Hook{storageobjectinuseprotection.Hook()}
		},
		edges: (*generator).claimEdges, generate: (*generator).storageRequest,
	}}
}

// storageClasses returns clusters without a default class, with one, and with several that have equal and different ages.
func storageClasses() [][]runtime.Object {
	class := func(name string, age time.Duration, expands *bool, annotations map[string]string) *storagev1.StorageClass {
		created := metav1.NewTime(time.Unix(1_000_000, 0).Add(-age))
		return &storagev1.StorageClass{
			ObjectMeta:           metav1.ObjectMeta{Name: name, Annotations: annotations, CreationTimestamp: created},
			AllowVolumeExpansion: expands,
		}
	}
	stable := map[string]string{defaultstorageclass.Annotation: "true"}
	beta := map[string]string{defaultstorageclass.BetaAnnotation: "true"}
	off := map[string]string{defaultstorageclass.Annotation: "false", "other": "true"}
	both := map[string]string{defaultstorageclass.Annotation: "false", defaultstorageclass.BetaAnnotation: "true"}
	return [][]runtime.Object{
		nil,
		{class("slow", 0, nil, off), class("fast", 0, ptr.To(true), nil)},
		{class("slow", 0, ptr.To(false), stable), class("fast", 0, ptr.To(true), nil)},
		{class("slow", 0, nil, beta), class("fast", time.Hour, ptr.To(true), stable)},
		{class("slow", time.Hour, nil, both), class("fast", time.Hour, ptr.To(true), stable), class("other", 2*time.Hour, nil, stable)},
	}
}

func (g *generator) claimEdges() (all []*request) {
	for _, class := range []*string{nil, ptr.To(""), ptr.To("slow"), ptr.To("fast"), ptr.To("gone")} {
		for _, phase := range []corev1.PersistentVolumeClaimPhase{"", corev1.ClaimBound, corev1.ClaimPending, corev1.ClaimLost} {
			for _, size := range []string{"", "1Gi", "2Gi", "1024Mi"} {
				old, claim := g.claim(class, phase, "1Gi"), g.claim(class, phase, size)
				all = append(all, onClaims(admission.Create, "", claim, nil), onClaims(admission.Update, "", claim, old), onClaims(admission.Update, "status", claim, old))
			}
		}
	}
	return all
}

func onClaims(op admission.Operation, subresource string, claim, old *corev1.PersistentVolumeClaim) *request {
	return on(op, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims", subresource, claim, old)
}

func (g *generator) claim(class *string, phase corev1.PersistentVolumeClaimPhase, size string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "plain"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: class},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
	}
	if size != "" {
		claim.Spec.Resources.Requests = quantities(corev1.ResourceStorage, size)
	}
	return claim
}

// randomClaim returns a claim that may name a class, sometimes in the annotation that storageClassName replaced.
func (g *generator) randomClaim() *corev1.PersistentVolumeClaim {
	class := func() *string {
		return pick(g, nil, nil, ptr.To(""), ptr.To("slow"), ptr.To("fast"), ptr.To("fast"), ptr.To("gone"))
	}
	claim := g.claim(class(), pick(g, "", corev1.ClaimBound, corev1.ClaimBound, corev1.ClaimPending), pick(g, "", "0", "1Gi", "2Gi", "1500m"))
	if name := class(); name != nil && g.oneIn(4) {
		claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: *name}
	}
	claim.Finalizers = g.finalizers(storageobjectinuseprotection.ClaimFinalizer)
	g.rename(claim)
	return claim
}

// finalizers returns up to two finalizers.
func (g *generator) finalizers(own string) []string {
	return pick(g, nil, nil, []string{own}, []string{"example.com/a"}, []string{"example.com/a", own})
}

// rename sometimes replaces the name of the object with a generateName, and sometimes removes it.
func (g *generator) rename(object metav1.Object) {
	switch g.IntN(6) {
	case 0:
		object.SetName("")
		object.SetGenerateName("generated-")
	case 1:
		object.SetName("")
	}
}

func (g *generator) claimRequest() *request {
	claim := g.randomClaim()
	old := claim.DeepCopy()
	if g.oneIn(2) {
		old.Spec.Resources, old.Status.Phase = g.randomClaim().Spec.Resources, corev1.ClaimBound
	}
	switch n := g.IntN(100); {
	case n < 40:
		return onClaims(admission.Create, "", claim, nil)
	case n < 80:
		return onClaims(admission.Update, "", claim, old)
	case n < 90:
		return onClaims(admission.Update, "status", claim, old)
	case n < 95:
		return onClaims(admission.Delete, "", nil, old)
	}
	return onPods(admission.Create, "", g.pod(), nil)
}

// storageRequest returns a request for one of the kinds that get a finalizer.
func (g *generator) storageRequest() *request {
	op := pick(g, admission.Create, admission.Create, admission.Create, admission.Update)
	name := fmt.Sprintf("a-%d", g.IntN(3))
	switch g.IntN(3) {
	case 0:
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: g.finalizers(storageobjectinuseprotection.VolumeFinalizer)}}
		g.rename(volume)
		return created(op, on(op, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), "persistentvolumes", pick(g, "", "", "status"), volume, volume.DeepCopy()))
	case 1:
		class := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: g.finalizers(storageobjectinuseprotection.AttributesClassFinalizer)}, DriverName: "example.com"}
		g.rename(class)
		return created(op, on(op, storagev1.SchemeGroupVersion.WithKind("VolumeAttributesClass"), "volumeattributesclasses", "", class, class.DeepCopy()))
	}
	return g.claimRequest()
}

// created removes the old object of a CREATE.
func created(op admission.Operation, r *request) *request {
	if op == admission.Create {
		r.old = nil
	}
	return r
}
