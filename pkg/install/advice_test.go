// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// expiring is a cluster in which the webhook's serving certificate has expired.
type expiring struct{ cluster }

func (expiring) ask(context.Context, string) error {
	return apierrors.NewInternalError(fmt.Errorf(
		"failed calling webhook %q: failed to call webhook: x509: certificate has expired or is not yet valid: current time %s is after 2000-01-02T00:00:00Z",
		markerName("hooks"), time.Now().Format(time.RFC3339)))
}

func TestExpiredCertificateIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		o := options()
		o.Logger = funcr.New(func(_, line string) { log = append(log, line) }, funcr.Options{})
		i, c := newFake(t, o, denying("one.example.com"))
		i.cluster = expiring{c}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := i.Wait(ctx); err == nil || !strings.Contains(err.Error(), "(the serving certificate was not renewed, or a clock is wrong)") {
			t.Errorf("got %v", err)
		}
		if len(log) != 1 {
			t.Errorf("logged %s", strings.Join(log, "\n"))
		}
	})
}
