// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// request returns a token request of the ServiceAccount robot for a Pod.
func request(pod string, uid types.UID, audiences ...string) call {
	return call{
		op: admissionv1.Create, kind: authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), resource: "serviceaccounts/token",
		object: &authenticationv1.TokenRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "robot"},
			Spec: authenticationv1.TokenRequestSpec{
				Audiences: audiences, BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod, UID: uid},
			},
		},
	}
}

// withVolumes returns a Pod on Node a with volumes, some of which have audiences.
func withVolumes() *corev1.Pod {
	claim := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
	}
	return onNode("volumes", func(p *corev1.Pod) {
		p.Spec.NodeName = "a"
		p.Spec.Volumes = []corev1.Volume{
			{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{}, {ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault"}},
			}}}},
			claim("gone"), claim("nothing"), {Name: "empty"}, claim("csi"),
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
			{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "unknown.example.com"}}},
			claim("ebs"),
		}
	})
}

// sources returns a volume source for each kind of storage.
func sources() map[string]corev1.PersistentVolumeSource {
	csi := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com"}}
	return map[string]corev1.PersistentVolumeSource{
		"csi": csi, "volumes-scratch": {NFS: &corev1.NFSVolumeSource{}},
		"ebs":    {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}},
		"disk":   {AzureDisk: &corev1.AzureDiskVolumeSource{}},
		"file":   {AzureFile: &corev1.AzureFilePersistentVolumeSource{}},
		"cinder": {Cinder: &corev1.CinderPersistentVolumeSource{}},
		"gce":    {GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}},
		"px":     {PortworxVolume: &corev1.PortworxVolumeSource{}},
		"vmdk":   {VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}},
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	const prefix = `serviceaccounts "robot" is forbidden: `
	unbound := request("a", "uid-a")
	unbound.object.(*authenticationv1.TokenRequest).Spec.BoundObjectRef.Kind = "Secret"
	const missing = `audience "other" not found in pod spec volume, `
	rows := []struct {
		reason string
		call   call
		want   string
	}{
		{"not bound to a Pod", unbound, prefix + "node requested token not bound to a pod"},
		{"no UID", request("a", ""), prefix + "node requested token with a pod binding without a uid"},
		{"no such Pod", request("gone", "uid-gone"), `pod "gone" not found`},
		{"another UID", request("a", "old"), prefix + "the UID in the bound object reference (old) does not match the UID in record. The object might have been deleted and then recreated"},
		{"the Pod of another node", request("b", "uid-b"), prefix + "node requested token bound to a pod scheduled on a different node"},
		{"two audiences", request("a", "uid-a", "a", "b"), prefix + "node may only request 0 or 1 audiences"},
		{"a projected token", request("volumes", "uid-volumes", "vault"), ""},
		{"a CSI driver that gets tokens", request("volumes", "uid-volumes", "disk"), ""},
		{"some volumes cannot be looked up", request("volumes", "uid-volumes", "other"), prefix + `error validating audience "other": [persistentvolumeclaim "gone" not found, persistentvolume "nothing" not found, csidriver.storage.k8s.io "unknown.example.com" not found]`},
		{"a permission", request("a", "uid-a", "granted"), ""},
		{"no permission", request("a", "uid-a", "other"), prefix + missing + "system:node:a is not authorized to request tokens for this audience"},
		{"no audience", request("a", "uid-a"), prefix + `audience "" not found in pod spec volume, system:node:a is not authorized to request tokens for this audience`},
		{"the authorizer fails", request("a", "uid-a", "broken"), prefix + `audience "broken" not found in pod spec volume, error authorizing system:node:a to request tokens for this audience: no such role`},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) { row.call.check(t, row.want) })
	}
}

func TestDriversOfInTreeVolumes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"csi": "", "volumes-scratch": "", "ebs": "ebs.csi.aws.com", "disk": "disk.csi.azure.com", "file": "file.csi.azure.com",
		"cinder": "cinder.csi.openstack.org", "gce": "pd.csi.storage.gke.io", "px": "pxd.portworx.com", "vmdk": "csi.vsphere.vmware.com",
	} {
		if got := successor(inTree(sources()[name])); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) []byte {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	encoded := func(name string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: named(name)})
	}
	const (
		prefix  = `certificatesigningrequests.certificates.k8s.io "node" is forbidden: `
		other   = prefix + "can only create a node CSR with CN=system:node:a"
		notPEM  = prefix + "unable to parse csr: PEM block type must be CERTIFICATE REQUEST"
		notASN1 = prefix + "unable to parse csr: asn1: structure error: tags don't match (16 vs {class:1 tag:14 length:111 isCompound:true}) {optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false} certificateRequest @2"
	)
	rows := []struct {
		signer  string
		request []byte
		want    string
	}{
		{certificatesv1.KubeletServingSignerName, encoded("system:node:a"), ""},
		{certificatesv1.KubeAPIServerClientKubeletSignerName, encoded("system:node:a"), ""},
		{certificatesv1.KubeletServingSignerName, encoded("system:node:b"), other},
		{certificatesv1.KubeletServingSignerName, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("nonsense")}), notASN1},
		{certificatesv1.KubeAPIServerClientKubeletSignerName, named("system:node:a"), notPEM},
		{certificatesv1.KubeAPIServerClientSignerName, encoded("system:node:b"), ""},
	}
	for _, row := range rows {
		call{
			op: admissionv1.Create, kind: certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), resource: "certificatesigningrequests",
			object: &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: row.signer, Request: row.request},
			},
		}.check(t, row.want)
	}
	call{
		op: admissionv1.Create, kind: certificatesv1beta1.SchemeGroupVersion.WithKind("PodCertificateRequest"), resource: "podcertificaterequests",
		object: &certificatesv1beta1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a"}},
	}.check(t, `podcertificaterequests.certificates.k8s.io "a" is forbidden: PodCertificateRequest feature gate is disabled`)
}
