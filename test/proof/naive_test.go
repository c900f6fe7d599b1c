// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/admitkit/admitkit/pkg/certs"
)

// naive is a certificate source as some projects implement it. One Secret has the CA and the serving
// certificate, and the first replica that finds them old replaces both. The replicas copy the new CA
// into every caBundle. Between these steps calls fail.
type naive struct {
	r         Rotation
	clients   kubernetes.Interface
	served    atomic.Pointer[tls.Certificate]
	bundle    atomic.Pointer[[]byte]
	rotations atomic.Int64
}

func newNaive(r Rotation) (*naive, error) {
	config, err := configFor(r)
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	return &naive{r: r, clients: clients}, err
}

func (n *naive) Start(ctx context.Context) error {
	ticker := time.NewTicker(n.r.Interval)
	defer ticker.Stop()
	for {
		if err := n.turn(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			slog.Error("cannot update the certificates", "err", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Keys of the Secret.
const caKey, certKey, keyKey = "ca.crt", corev1.TLSCertKey, corev1.TLSPrivateKeyKey

// turn replaces old certificates and writes the CA into the configurations.
func (n *naive) turn(ctx context.Context) error {
	api := n.clients.CoreV1().Secrets(n.r.Namespace)
	stored, err := api.Get(ctx, n.r.Secret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		stored = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: n.r.Secret}}
	case err != nil:
		return err
	}
	pair, err := tls.X509KeyPair(stored.Data[certKey], stored.Data[keyKey])
	if err != nil || time.Until(pair.Leaf.NotAfter) < n.r.CALifetime/3 {
		if stored.Data, err = n.generate(); err != nil {
			return err
		}
		if stored.ResourceVersion == "" {
			stored, err = api.Create(ctx, stored, metav1.CreateOptions{})
		} else {
			stored, err = api.Update(ctx, stored, metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
		if pair, err = tls.X509KeyPair(stored.Data[certKey], stored.Data[keyKey]); err != nil {
			return err
		}
	}
	bundle := stored.Data[caKey]
	if old := n.bundle.Swap(&bundle); old != nil && !bytes.Equal(*old, bundle) {
		n.rotations.Add(1)
	}
	n.served.Store(&pair)
	return n.publish(ctx, bundle)
}

func (n *naive) publish(ctx context.Context, bundle []byte) error {
	api := n.clients.AdmissionregistrationV1()
	mutating, err := api.MutatingWebhookConfigurations().Get(ctx, n.r.Configuration, metav1.GetOptions{})
	if err != nil {
		return err
	}
	changed := false
	for i := range mutating.Webhooks {
		changed = replace(&mutating.Webhooks[i].ClientConfig.CABundle, bundle) || changed
	}
	if changed {
		if _, err := api.MutatingWebhookConfigurations().Update(ctx, mutating, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	validating, err := api.ValidatingWebhookConfigurations().Get(ctx, n.r.Configuration, metav1.GetOptions{})
	if err != nil {
		return err
	}
	changed = false
	for i := range validating.Webhooks {
		changed = replace(&validating.Webhooks[i].ClientConfig.CABundle, bundle) || changed
	}
	if changed {
		_, err = api.ValidatingWebhookConfigurations().Update(ctx, validating, metav1.UpdateOptions{})
	}
	return err
}

// replace sets *at to bundle and reports whether that changed it.
func replace(at *[]byte, bundle []byte) bool {
	same := bytes.Equal(*at, bundle)
	*at = bundle
	return !same
}

// generate returns a new CA without its key, and a serving certificate with its key.
func (n *naive) generate() (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "naive CA"},
		NotBefore: now.Add(-n.r.Skew), NotAfter: now.Add(n.r.CALifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	ca, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano() + 1), Subject: pkix.Name{CommonName: "naive webhook"},
		NotBefore: template.NotBefore, NotAfter: template.NotAfter, DNSNames: n.r.Hosts,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, template, &leafKey.PublicKey, key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		caKey:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca}),
		certKey: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf}),
		keyKey:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}, nil
}

func (n *naive) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := n.served.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("no certificate yet")
}

func (n *naive) Bundle() []byte {
	if b := n.bundle.Load(); b != nil {
		return *b
	}
	return nil
}

func (n *naive) Status() certs.Status {
	st := certs.Status{Phase: certs.Stable, Rotations: int(n.rotations.Load()), Trusted: true}
	if c := n.served.Load(); c != nil {
		st.NotBefore, st.NotAfter, st.CANotAfter = c.Leaf.NotBefore, c.Leaf.NotAfter, c.Leaf.NotAfter
	} else {
		st.Phase = certs.Starting
	}
	return st
}
