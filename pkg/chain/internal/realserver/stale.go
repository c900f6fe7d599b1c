// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A List is a list of objects, with the fields that removeStale reads. Webhooks is empty if the objects are not
// webhook configurations.
type List struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Webhooks []struct {
			Name         string                                      `json:"name"`
			ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`
		} `json:"webhooks"`
	} `json:"items"`
}

// removeStale deletes the objects of engines whose process has ended. It returns the names of webhooks that belong to
// no engine. An engine stores its configurations before other objects. removeStale lists the configurations last, so
// that an engine that starts at the same time counts as alive.
func removeStale(ctx context.Context, client *API, c *cleaner) (foreign []string, err error) {
	created := map[string]string{} // the engine's id by the path of an object
	for _, path := range []string{CRDsPath, NamespacesPath} {
		var all List
		if err := client.Get(ctx, path, &all); err != nil {
			return nil, err
		}
		for _, item := range all.Items {
			if engine := item.Metadata.Annotations[EngineKey]; engine != "" && item.Metadata.DeletionTimestamp == nil {
				created[path+"/"+item.Metadata.Name] = engine
			}
		}
	}
	alive := map[string]bool{} // by the id of the engine
	for _, path := range []string{MutatingPath, ValidatingPath} {
		var all List
		if err := client.Get(ctx, path, &all); err != nil {
			return nil, err
		}
		for _, item := range all.Items {
			engine := item.Metadata.Labels[EngineKey]
			for _, h := range item.Webhooks {
				if engine == "" {
					foreign = append(foreign, item.Metadata.Name+"/"+h.Name)
				} else if !alive[engine] {
					alive[engine] = isAlive(ctx, h.ClientConfig)
				}
			}
		}
	}
	var errs []error
	for path, engine := range created {
		if !alive[engine] {
			errs = append(errs, c.removeCreated(ctx, path))
		}
	}
	for engine, ok := range alive {
		if !ok {
			errs = append(errs, removeConfigurations(ctx, client, engine))
		}
	}
	return foreign, errors.Join(errs...)
}

// isAlive reports whether the proxy of an engine accepts connections with the certificate of that engine.
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
