// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/problem"
)

// newProxy returns a handler that passes requests on to the webhook.
func (o *Options) newProxy(report func(error)) (http.Handler, *http.Transport) {
	transport := &http.Transport{
		TLSClientConfig:     o.tls,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     90 * time.Second, // as in the API server
		TLSHandshakeTimeout: 10 * time.Second,
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(o.target)
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				err = o.explain(err)
				report(err)
			}
			writeFailure(w, err)
		},
	}
	return rewindable(proxy), transport
}

// maxRewound is the maximum size, in bytes, of a body that can be sent again.
const maxRewound = 1 << 20

// rewindable returns a handler that lets the transport send a request again if the webhook closed an idle connection
// before it received the request.
func rewindable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength <= 0 || r.ContentLength > maxRewound {
			next.ServeHTTP(w, r)
			return
		}
		var body bytes.Buffer
		if _, err := io.CopyN(&body, r.Body, r.ContentLength); err != nil {
			panic(http.ErrAbortHandler) // the client is gone
		}
		own := r.Clone(r.Context())
		own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body.Bytes())), nil }
		own.Body, _ = own.GetBody() // it never fails
		next.ServeHTTP(w, own)
	})
}

// explain adds the address of the webhook to the error of a call that did not reach it.
func (o *Options) explain(err error) error {
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	return fmt.Errorf("the recording proxy cannot call the webhook at %s: %w", o.To, err)
}

// writeFailure writes an API status, whose message the API server shows to the user.
func writeFailure(w http.ResponseWriter, err error) {
	body, _ := json.Marshal(metav1.Status{ // it always marshals
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Message: err.Error(), Reason: metav1.StatusReasonServiceUnavailable, Code: http.StatusBadGateway,
	})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write(append(body, '\n'))
}

// check calls the webhook once. Any HTTP response counts as success.
func (o *Options) reach(transport *http.Transport) error {
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	response, err := client.Get(o.To) //nolint:noctx // the client has a timeout
	if err != nil {
		return problem.Hint(o.explain(err), "calls fail until the webhook is reachable at --to, with the CA in --ca-file")
	}
	return response.Body.Close()
}
