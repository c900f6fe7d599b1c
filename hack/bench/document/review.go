// SPDX-License-Identifier: Apache-2.0

package document

import (
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodReview returns the AdmissionReview for the creation of a Pod, or for an update if old is set.
func PodReview(object, old []byte) []byte {
	return review(metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, object, old)
}

func review(kind metav1.GroupVersionKind, resource metav1.GroupVersionResource, object, old []byte) []byte {
	req := &admissionv1.AdmissionRequest{
		UID: uid, Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
		Namespace: "shop", Operation: admissionv1.Create,
		UserInfo: authenticationv1.UserInfo{
			Username: "system:serviceaccount:kube-system:replicaset-controller", UID: "a7b4b1b4-9f66-4f5d-a3a9-0a3d3c2e5f10",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
		},
		Object: runtime.RawExtension{Raw: object}, DryRun: new(false),
		Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
	}
	if old != nil {
		req.Operation, req.Name, req.OldObject = admissionv1.Update, "web-7d4b9c6f5-x2x9z", runtime.RawExtension{Raw: old}
		req.Options.Raw = []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`)
	}
	return append(MustEncode(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"}, Request: req,
	}), '\n') // the API server's encoder ends a document with a newline
}
