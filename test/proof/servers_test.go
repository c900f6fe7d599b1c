// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const readyPath = "/readyz"

// newServer returns a function that serves the hooks until its context is done, and its address.
func newServer(s Settings, source certs.Source, stats *stats) (serve func(context.Context) error, addr string, err error) {
	hooks := Hooks(s.Namespace, s.Pause)
	listener, err := listen()
	if err != nil {
		return nil, "", err
	}
	addr = listener.Addr().String()
	switch s.Server {
	case Admitkit:
		return webhook.NewServer(options(s, source, stats, listener), hooks...).Start, addr, nil
	case Abrupt:
		return abrupt(listener, certs.TLSConfig(source), hooks), addr, nil
	case ControllerRuntime:
		// The webhook server of controller-runtime opens its own listener, so release the port for it.
		port := listener.Addr().(*net.TCPAddr).Port
		return controllerRuntime(port, source, s.Pause), addr, listener.Close()
	}
	return nil, "", fmt.Errorf("unknown server %q", s.Server)
}

func options(s Settings, source certs.Source, stats *stats, listener net.Listener) webhook.Options {
	return webhook.Options{
		Listener: listener, TLSConfig: certs.TLSConfig(source), Ready: certs.Ready(source),
		Observers:     []webhook.Observer{stats},
		ShutdownDelay: s.ShutdownDelay, DrainTimeout: s.DrainTimeout,
		MaxInFlight: s.MaxInFlight, MaxInFlightBytes: s.MaxInFlightBytes,
		MaxConnections: s.MaxConnections, MaxConnectionAge: s.MaxConnectionAge,
	}
}

// abrupt returns a server of the standard library that closes all connections when its context ends.
func abrupt(listener net.Listener, tlsConfig *tls.Config, hooks []*webhook.Hook) func(context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc(readyPath, ok)
	for _, hook := range hooks {
		mux.Handle(hook.Path(), hook)
	}
	server := &http.Server{Handler: mux, TLSConfig: tlsConfig, ReadHeaderTimeout: 10 * time.Second}
	return func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = server.Close() })()
		if err := server.ServeTLS(listener, "", ""); err != http.ErrServerClosed {
			return err
		}
		return nil
	}
}

// controllerRuntime returns the webhook server of controller-runtime. Its handlers make the same
// decisions as those of Hooks.
func controllerRuntime(port int, source certs.Source, pause time.Duration) func(context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc(readyPath, ok)
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: "127.0.0.1", Port: port, WebhookMux: mux,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = source.GetCertificate }},
	})
	server.Register("/mutate/"+MutatingName, &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		var object corev1.ConfigMap
		if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if object.Data == nil {
			object.Data = map[string]string{}
		}
		object.Data[Seen] = "true"
		if err := Wait(ctx, pause); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		changed, err := json.Marshal(object)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(req.Object.Raw, changed)
	})})
	server.Register("/validate/"+ValidatingName, &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		var object corev1.ConfigMap
		if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if object.Data[Forbidden] != "" {
			return admission.Denied(Forbidden)
		}
		if err := Wait(ctx, pause); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.Allowed("")
	})})
	return server.Start
}
