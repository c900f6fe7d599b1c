// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/admitkit/admitkit/pkg/chain/internal/inmemory"
)

// withWarnings calls f with a context in which the API server's own code collects warnings. It returns the warnings that a
// client receives, and the error of f.
func withWarnings(ctx context.Context, f func(context.Context) error) ([]string, error) {
	var err error
	w := inmemory.NewResponse()
	filters.WithWarningRecorder(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		err = f(req.Context())
	})).ServeHTTP(w, (&http.Request{}).WithContext(ctx))
	var warnings []string
	shown, _ := utilnet.ParseWarningHeaders(w.Header()["Warning"])
	for _, s := range shown {
		warnings = append(warnings, s.Text)
	}
	return warnings, err
}

// rejectionOf returns the status that a client receives for an error.
func rejectionOf(err error, realHosts *strings.Replacer) *metav1.Status {
	status := responsewriters.ErrorToAPIStatus(err).DeepCopy() // a plugin can return the same error again
	status.Message = realHosts.Replace(status.Message)
	if status.Details != nil {
		for i := range status.Details.Causes {
			status.Details.Causes[i].Message = realHosts.Replace(status.Details.Causes[i].Message)
		}
	}
	return status
}
