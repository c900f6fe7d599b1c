// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

// ownObjects returns requests for objects that belong to one node.
func ownObjects(*generator, chooser) (all []*request) {
	lease, csiNode := coordinationv1.SchemeGroupVersion.WithKind("Lease"), storagev1.SchemeGroupVersion.WithKind("CSINode")
	for _, l := range stored[*coordinationv1.Lease]() {
		generated := l.DeepCopy()
		generated.Name, generated.GenerateName, generated.UID = "", "node-", ""
		all = append(all, on(admission.Create, lease, "leases", "", l, nil), on(admission.Update, lease, "leases", "", l, l), on(admission.Delete, lease, "leases", "", nil, l),
			on(admission.Create, lease, "leases", "", generated, nil))
	}
	for _, n := range stored[*storagev1.CSINode]() {
		generated := n.DeepCopy()
		generated.Name, generated.GenerateName, generated.UID = "", "node-", ""
		all = append(all, on(admission.Create, csiNode, "csinodes", "", n, nil), on(admission.Update, csiNode, "csinodes", "", n, n), on(admission.Delete, csiNode, "csinodes", "", nil, n),
			on(admission.Create, csiNode, "csinodes", "", generated, nil))
	}
	kind := resourcev1.SchemeGroupVersion.WithKind("ResourceSlice")
	for _, s := range append(stored[*resourcev1.ResourceSlice](), slice("slice-of-none", "")) {
		created := s.DeepCopy()
		created.Name, created.GenerateName, created.UID = "", "slice-", ""
		if s.Name == "slice-of-none" {
			created.Spec.NodeName, created.Spec.AllNodes, s.Spec.NodeName = nil, ptr.To(true), nil
		}
		all = append(all, on(admission.Create, kind, "resourceslices", "", created, nil), on(admission.Update, kind, "resourceslices", "", s, s), on(admission.Delete, kind, "resourceslices", "", nil, s))
	}
	return all
}

// signingRequests contains certificate requests with the common names of node-a and node-b, one with another name, and
// some that cannot be parsed.
var signingRequests = func() (all [][]byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"system:node:node-a", "system:node:node-b", "node-a"} {
		der, err := x509.CreateCertificateRequest(cryptorand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{"system:nodes"}}}, key)
		if err != nil {
			panic(err)
		}
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	return append(all, nil, []byte("-"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("a")}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("a")}))
}()

func certificateRequests(*generator, chooser) (all []*request) {
	kind := certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")
	for _, signer := range []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeAPIServerClientSignerName, "example.com/a"} {
		for _, pem := range signingRequests {
			r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}, Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: signer, Request: pem, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
			}}
			all = append(all, on(admission.Create, kind, "certificatesigningrequests", "", r, nil), on(admission.Update, kind, "certificatesigningrequests", "approval", r, r))
		}
	}
	forPod := &certificatesv1beta1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "plain", GenerateName: "pod-"}}
	kind = certificatesv1beta1.SchemeGroupVersion.WithKind("PodCertificateRequest")
	return append(all, on(admission.Create, kind, "podcertificaterequests", "", forPod, nil), on(admission.Update, kind, "podcertificaterequests", "status", forPod, forPod),
		on(admission.Delete, kind, "podcertificaterequests", "", nil, forPod))
}
