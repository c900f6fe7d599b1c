// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	namespacesPath = "/api/v1/namespaces"
	crdsPath       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// listed is what is read of configurations, whatever their sort, and of other objects.
type listed struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Webhooks []struct {
			Name         string                                      `json:"name"`
			ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`
		} `json:"webhooks"`
	} `json:"items"`
}

// removeStale removes what engines left behind that do not answer any more, and notes the
// webhooks of others. What was made is listed before the configurations, which are stored
// first: so an engine that starts meanwhile is not taken for a dead one.
func (s *serverEngine) removeStale(ctx context.Context) error {
	made := map[string]string{} // path of an object: its engine
	for _, path := range []string{crdsPath, namespacesPath} {
		var all listed
		if err := s.api.get(ctx, path, &all); err != nil {
			return err
		}
		for _, item := range all.Items {
			if engine := item.Metadata.Annotations[engineKey]; engine != "" && item.Metadata.DeletionTimestamp == nil {
				made[path+"/"+item.Metadata.Name] = engine
			}
		}
	}
	alive := map[string]bool{} // by engine
	for _, path := range []string{mutatingPath, validatingPath} {
		var all listed
		if err := s.api.get(ctx, path, &all); err != nil {
			return err
		}
		for _, item := range all.Items {
			engine := item.Metadata.Labels[engineKey]
			for _, h := range item.Webhooks {
				if engine == "" {
					s.foreign = append(s.foreign, item.Metadata.Name+"/"+h.Name)
				} else if !alive[engine] {
					alive[engine] = isAlive(ctx, h.ClientConfig)
				}
			}
		}
	}
	var errs []error
	for path, engine := range made {
		if !alive[engine] {
			errs = append(errs, s.removeMade(ctx, path))
		}
	}
	for engine, ok := range alive {
		if !ok {
			errs = append(errs, s.removeConfigurations(ctx, engine))
		}
	}
	return errors.Join(errs...)
}

// isAlive reports whether the proxy of an engine is there, with the certificate that only it
// can have.
func isAlive(ctx context.Context, c admissionregistrationv1.WebhookClientConfig) bool {
	if c.URL == nil {
		return false
	}
	u, err := url.Parse(*c.URL)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CABundle)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func (s *serverEngine) removeConfigurations(ctx context.Context, engine string) error {
	var errs []error
	for _, path := range []string{mutatingPath, validatingPath} {
		errs = append(errs, s.api.do(ctx, message{method: http.MethodDelete, path: path, query: url.Values{"labelSelector": {engineKey + "=" + engine}}}, nil))
	}
	return errors.Join(errs...)
}

// encode is for objects of our own, which can be encoded.
func encode(object any) []byte {
	b, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return b
}
