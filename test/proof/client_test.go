// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/test/proof/replica/control"
)

// A caller sends reviews to one replica as the API server does: over HTTP/1.1, with at most 25 idle connections, and again after a
// Retry-After.
type caller struct {
	url      string
	http     *http.Client
	body     []byte
	attempts *samples // each try
	calls    *samples // each call, with its tries
	shed     atomic.Int64
	retried  atomic.Int64
}

const uid = "11111111-2222-3333-4444-555555555555"

// newCaller calls the mutating hook of a replica about an object of this size.
func newCaller(t *testing.T, addr, namespace, host string, bundle []byte, size int) *caller {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, ServerName: host, NextProtos: []string{"http/1.1"}},
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{
		url: "https://" + addr + "/mutate/" + control.MutatingName, http: &http.Client{Transport: transport},
		body: newReview(t, namespace, size), attempts: &samples{}, calls: &samples{},
	}
}

func newReview(t *testing.T, namespace string, size int) []byte {
	t.Helper()
	object, err := json.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "large"},
		Data:       map[string]string{"text": strings.Repeat("x", size)},
	})
	if err != nil {
		t.Fatal(err)
	}
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	resource := metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: uid, Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
			Namespace: namespace, Name: "large", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// errShed is a call that was turned away until its time was over.
var errShed = errors.New("turned away")

// call makes one call within a timeout, and tries again when it is told to, up to ten times.
func (c *caller) call(ctx context.Context, timeout time.Duration) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for retries := 0; ; retries++ {
		began := time.Now()
		later, err := c.try(ctx, timeout)
		if later < 0 {
			c.attempts.add(began, err)
			c.calls.add(start, err)
			return err
		}
		c.shed.Add(1)
		timer := time.NewTimer(later)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil || retries == 10 {
			return errShed
		}
		c.retried.Add(1)
	}
}

// try makes one attempt. It returns how long to wait for the next, if it was turned away as it
// is documented, or else a negative duration.
func (c *caller) try(ctx context.Context, timeout time.Duration) (time.Duration, error) {
	// It reads the body from a slice, so many of them cost nothing.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"?timeout="+timeout.String(), bytes.NewReader(c.body))
	if err != nil {
		return -1, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return time.Hour, nil // given up by the caller
		}
		return -1, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return -1, err
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		return turnedAway(resp, answer)
	case resp.StatusCode != http.StatusOK:
		return -1, fmt.Errorf("%s: %s", resp.Status, answer)
	case !bytes.Contains(answer, []byte(`"allowed":true`)) || !bytes.Contains(answer, []byte(uid)):
		return -1, fmt.Errorf("not the answer expected: %.200s", answer)
	}
	return -1, nil
}

// turnedAway checks that the answer is one that the API server understands.
func turnedAway(resp *http.Response, answer []byte) (time.Duration, error) {
	reasons := map[int]metav1.StatusReason{
		http.StatusTooManyRequests:    metav1.StatusReasonTooManyRequests,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}
	var status metav1.Status
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err == nil {
		err = json.Unmarshal(answer, &status)
	}
	if err != nil || status.Reason != reasons[resp.StatusCode] || status.Message == "" {
		return -1, fmt.Errorf("%s, Retry-After %q, not with a proper Status: %.200s", resp.Status, resp.Header.Get("Retry-After"), answer)
	}
	return time.Duration(seconds) * time.Second, nil
}

// disableKeepAlives makes each call shake hands.
func (c *caller) disableKeepAlives() { c.http.Transport.(*http.Transport).DisableKeepAlives = true }
