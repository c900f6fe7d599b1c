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
)

// A caller sends reviews to one replica as the API server does: over HTTP/1.1 and with at most 25 idle
// connections. It repeats a call after Retry-After.
type caller struct {
	url      string
	http     *http.Client
	body     []byte
	attempts *samples     // attempts that were not shed
	calls    *samples     // calls whose last attempt was not shed
	shed     atomic.Int64 // attempts that the replica refused, or that the caller abandoned
	retried  atomic.Int64 // attempts that repeat a refused one
}

const uid = "11111111-2222-3333-4444-555555555555"

// newCaller returns a caller of a replica's mutating hook. The object in its calls has a text of size bytes.
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
		url: "https://" + addr + "/mutate/" + MutatingName, http: &http.Client{Transport: transport},
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

// errShed is the error of a call that the replica refused until its deadline or its last attempt.
var errShed = errors.New("the replica refused every attempt")

// call makes one call within a timeout. After a refusal it waits for Retry-After and tries again, up to
// ten times.
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

// try makes one attempt. If the replica correctly refused the attempt, try returns the delay in Retry-After.
// If ctx ended, it returns an hour. Otherwise it returns a negative duration.
func (c *caller) try(ctx context.Context, timeout time.Duration) (time.Duration, error) {
	// The requests share the bytes of the body, so many requests need little memory.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"?timeout="+timeout.String(), bytes.NewReader(c.body))
	if err != nil {
		return -1, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return time.Hour, nil // the caller gave up
		}
		return -1, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return -1, err
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		return refusal(resp, answer)
	case resp.StatusCode != http.StatusOK:
		return -1, fmt.Errorf("%s: %s", resp.Status, answer)
	case !bytes.Contains(answer, []byte(`"allowed":true`)) || !bytes.Contains(answer, []byte(uid)):
		return -1, fmt.Errorf("the response does not allow the request: %.200s", answer)
	}
	return -1, nil
}

// refusal returns the delay in Retry-After, or an error if the API server would not understand the response.
func refusal(resp *http.Response, answer []byte) (time.Duration, error) {
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
		return -1, fmt.Errorf("%s, Retry-After %q, without a valid Status: %.200s", resp.Status, resp.Header.Get("Retry-After"), answer)
	}
	return time.Duration(seconds) * time.Second, nil
}

// disableKeepAlives makes each call open a new connection.
func (c *caller) disableKeepAlives() { c.http.Transport.(*http.Transport).DisableKeepAlives = true }
