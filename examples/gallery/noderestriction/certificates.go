// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// signingRequest lets a node request kubelet certificates only for itself. The signers check the rest of the request.
func signingRequest(_ context.Context, node string, req *webhook.Request[certificatesv1.CertificateSigningRequest]) error {
	switch req.Object.Spec.SignerName {
	case certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName:
	default:
		return nil
	}
	name, err := commonName(req.Object.Spec.Request)
	switch {
	case err != nil:
		return deny(req, "unable to parse csr: %s", err)
	case name != namePrefix+node:
		return deny(req, "can only create a node CSR with CN=system:node:%s", node)
	}
	return nil
}

// commonName returns the common name in a PEM-encoded certificate request.
func commonName(request []byte) (string, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return "", errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", err
	}
	return parsed.Subject.CommonName, nil
}

func podCertificateRequest(_ context.Context, _ string, req *webhook.Request[certificatesv1beta1.PodCertificateRequest]) error {
	return deny(req, "PodCertificateRequest feature gate is disabled")
}
