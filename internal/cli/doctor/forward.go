// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/admitkit/admitkit/internal/cli/objects"
)

// forward connects to a port of a Pod through the API server and the kubelet, as kubectl port-forward does, but without
// a local port. The error of a connection that the Pod refuses comes from the first Read.
func forward(ctx context.Context, config *rest.Config, namespace, pod string, port int32) (net.Conn, error) {
	dialer, err := forwardDialer(config, namespace, pod)
	if err != nil {
		return nil, err
	}
	stream, err := objects.Await(ctx, func() (httpstream.Connection, error) {
		stream, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		if err == nil && ctx.Err() != nil {
			_ = stream.Close() // Await has returned already
		}
		return stream, err
	})
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failure, err := stream.CreateStream(headers)
	if err == nil {
		_ = failure.Close() // only the kubelet writes to it
		headers.Set(corev1.StreamType, corev1.StreamTypeData)
		var data httpstream.Stream
		if data, err = stream.CreateStream(headers); err == nil {
			f := &forwardedConn{Stream: data, connection: stream, failure: make(chan string, 1)}
			go f.readFailure(failure)
			return f, nil
		}
	}
	return nil, errors.Join(err, stream.Close())
}

// forwardDialer returns a dialer that uses WebSockets, or SPDY if the API server or a proxy does not support them.
func forwardDialer(config *rest.Config, namespace, pod string) (httpstream.Dialer, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	url := client.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport, Timeout: config.Timeout}, http.MethodPost, url)
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(tunnel, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// A forwardedConn is a connection through a kubelet. It does not support deadlines: Close ends a blocked Read or Write.
type forwardedConn struct {
	httpstream.Stream
	connection httpstream.Connection
	failure    chan string
}

// errForwarded is the error of a connection that the kubelet could not make to the Pod.
type errForwarded string

func (e errForwarded) Error() string { return string(e) }

// readFailure reads the error that the kubelet may send.
func (f *forwardedConn) readFailure(from io.Reader) {
	const most = 4096
	text, _ := io.ReadAll(io.LimitReader(from, most)) // a broken connection also ends Read
	f.failure <- string(text)
}

// Read returns the error of the kubelet instead of io.EOF if the connection failed.
func (f *forwardedConn) Read(p []byte) (int, error) {
	n, err := f.Stream.Read(p)
	if err != nil && n == 0 {
		select {
		case text := <-f.failure:
			f.failure <- text
			if text = strings.TrimSpace(text); text != "" {
				return 0, errForwarded(text)
			}
		case <-time.After(time.Second): // the kubelet sends the error before it closes the stream
		}
	}
	return n, err
}

// Close ends the connection.
func (f *forwardedConn) Close() error { return errors.Join(f.Reset(), f.connection.Close()) }

type forwardedAddress struct{}

func (forwardedAddress) Network() string { return "tcp" }
func (forwardedAddress) String() string  { return "port-forward" }

func (*forwardedConn) LocalAddr() net.Addr              { return forwardedAddress{} }
func (*forwardedConn) RemoteAddr() net.Addr             { return forwardedAddress{} }
func (*forwardedConn) SetDeadline(time.Time) error      { return nil }
func (*forwardedConn) SetReadDeadline(time.Time) error  { return nil }
func (*forwardedConn) SetWriteDeadline(time.Time) error { return nil }
