// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/internal/redact"
	"github.com/admitkit/admitkit/internal/redact/planted"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// usualReview is a review of a Pod of 2 KB.
func usualReview() []byte {
	const object = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"mutated","generateName":"web-7d4b9c6f5-","namespace":"shop","uid":"8b0c6d3e-4a57-4d0c-9d0e-2f1f7c1b9a55",` +
		`"creationTimestamp":"2026-03-14T15:09:26Z","labels":{"app.kubernetes.io/name":"web","pod-template-hash":"7d4b9c6f5"},` +
		`"annotations":{"example.com/note":"owner \u003cshop@example.com\u003e \u0026 \"friends\""},"ownerReferences":[{"apiVersion":"apps/v1",` +
		`"kind":"ReplicaSet","name":"web-7d4b9c6f5","uid":"0c4e7b0e-5f5f-11e8-bc74-36e6bb280816","controller":true,"blockOwnerDeletion":true}]},` +
		`"spec":{"volumes":[{"name":"config","configMap":{"name":"web","defaultMode":420}}],"containers":[{"name":"app-0",` +
		`"image":"registry.example.com/team/web:v1.42.0","command":["/bin/sh","-c","exec /web --listen=:8080 \u003e/proc/1/fd/1 2\u003e\u00261"],` +
		`"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"NODE","valueFrom":{"fieldRef":{"apiVersion":"v1",` +
		`"fieldPath":"spec.nodeName"}}},{"name":"X","value":"some-value"}],"resources":{"limits":{"memory":"512Mi"},"requests":{"cpu":"250m","memory":"256Mi"}},` +
		`"volumeMounts":[{"name":"config","readOnly":true,"mountPath":"/etc/web"}],"terminationMessagePath":"/dev/termination-log",` +
		`"terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,` +
		`"dnsPolicy":"ClusterFirst","serviceAccountName":"web","securityContext":{},"schedulerName":"default-scheduler","enableServiceLinks":true},"status":{}}`
	review := string(reviewOf("mutated", "some-value"))
	start := strings.Index(review, `"object":`) + len(`"object":`)
	end := strings.Index(review, `,"oldObject"`)
	return []byte(review[:start] + object + review[end:])
}

// BenchmarkOverHTTP calls a hook over TLS from 4 connections: two servers without a recorder and one with it, in turn. It
// reports the median and the 99th percentile of the latency, and by how much they differ from those of the first server,
// in percent. The difference of the second server is the noise of the machine.
func BenchmarkOverHTTP(b *testing.B) {
	ca, err := devcert.NewCA()
	if err != nil {
		b.Fatal(err)
	}
	for _, in := range []struct {
		name    string
		options Options
	}{
		{"default", Options{}},
		{"everything", Options{MaxBytesPerSecond: -1}},
	} {
		b.Run(in.name, func(b *testing.B) {
			recorder := start(b, in.options)
			urls := [3]string{serve(b, ca, nil), serve(b, ca, nil), serve(b, ca, []webhook.Observer{recorder})}
			client := clientOf(b, ca)
			body := usualReview()
			var times [len(urls)][]time.Duration
			const slice = 100 // calls of each connection before the next server has its turn
			for _, url := range urls {
				load(b, client, url, body, slice)
			}
			b.ResetTimer()
			for i := 0; i < b.N; i += 4 * slice {
				for which := range urls {
					which = (which + i/(4*slice)) % len(urls)
					times[which] = append(times[which], load(b, client, urls[which], body, slice)...)
				}
			}
			b.StopTimer()
			for _, p := range []float64{0.5, 0.99} {
				without, again, with := quantile(times[0], p), quantile(times[1], p), quantile(times[2], p)
				b.ReportMetric(float64(without.Nanoseconds())/1e3, fmt.Sprintf("µs-p%g", 100*p))
				b.ReportMetric(percent(again, without), fmt.Sprintf("%%-p%g-noise", 100*p))
				b.ReportMetric(percent(with, without), fmt.Sprintf("%%-p%g-recorder", 100*p))
			}
			b.ReportMetric(float64(recorder.Stats().Recorded), "recorded")
			b.ReportMetric(float64(recorder.Stats().dropped()), "dropped")
		})
	}
}

// serve serves the hook with TLS and returns its URL.
func serve(b *testing.B, ca *devcert.CA, observers []webhook.Observer) string {
	b.Helper()
	config, err := ca.Serving("localhost")
	if err != nil {
		b.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	hook := pods()
	server := webhook.NewServer(webhook.Options{Listener: listener, TLSConfig: config, Observers: observers, ShutdownDelay: -1, Logger: funcr.New(func(string, string) {}, funcr.Options{})}, hook)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return "https://" + listener.Addr().String() + hook.Path() + "?timeout=10s"
}

func clientOf(b *testing.B, ca *devcert.CA) *http.Client {
	b.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Bundle)
	transport := &http.Transport{MaxIdleConnsPerHost: 4, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"http/1.1"}}}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// load makes n calls from each of 4 connections and returns the latencies.
func load(b *testing.B, client *http.Client, url string, body []byte, n int) []time.Duration {
	b.Helper()
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			own := make([]time.Duration, 0, n)
			for range n {
				began := time.Now()
				resp, err := client.Post(url, "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if own = append(own, time.Since(began)); resp.StatusCode != http.StatusOK {
					b.Errorf("answered %d", resp.StatusCode)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	wg.Wait()
	return all
}

// percent returns by how much a is larger than b.
func percent(a, b time.Duration) float64 { return 100 * (float64(a)/float64(b) - 1) }

func quantile(times []time.Duration, p float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[int(p*float64(len(times)-1))]
}

// BenchmarkRedact measures the redaction of a usual call, and of calls with many secrets.
func BenchmarkRedact(b *testing.B) {
	r, err := redact.New(redact.NewKey(), nil)
	if err != nil {
		b.Fatal(err)
	}
	calls := map[string][]planted.Call{
		"usual":   {{Request: usualReview(), Answer: []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1","allowed":true}}`)}},
		"planted": planted.New(1).Calls("a"),
	}
	for name, calls := range calls {
		b.Run(name, func(b *testing.B) {
			size := 0
			for _, c := range calls {
				size += len(c.Request) + len(c.Answer)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, c := range calls {
					if _, _, err := r.Call(c.Request, c.Answer); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkObserve measures what a recorder adds to a call: of a call that is not recorded, and of one that is.
func BenchmarkObserve(b *testing.B) {
	body, answer := usualReview(), patched(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"add","path":"/spec/containers/1","value":{"name":"proxy"}}]`).answer
	for name, rate := range map[string]float64{"skipped": -1, "recorded": 1} {
		b.Run(name, func(b *testing.B) {
			r := newOn(b, Options{Rate: rate, MaxBytesPerSecond: -1}, createFile)
			hook := pods()
			call := &ended{path: hook.Path(), body: body, answer: answer, Observation: &webhook.Observation{
				Hook: hook.Name(), Mutating: true, Outcome: webhook.Mutated, Code: 200, BodyBytes: len(body), AnswerBytes: len(answer),
			}}
			b.ReportAllocs()
			for b.Loop() {
				r.Begin(b.Context(), hook, nil)
				r.observe(call)
				if rate > 0 {
					select {
					case e := <-r.queue:
						r.finish(e)
					default:
					}
				}
			}
		})
	}
}
