// SPDX-License-Identifier: Apache-2.0

// Package server bounds and drains the connections and calls of a webhook server.
package server

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"time"
)

// The timeouts for clients that are slow outside of calls. Each call has a deadline of its own for
// reading.
const (
	HeaderTimeout = 10 * time.Second
	readTimeout   = time.Minute     // of requests that are not calls, and of the rest of a body
	WriteTimeout  = time.Minute     // counted from the headers; longer than any call, which has at most 30 s
	IdleTimeout   = 2 * time.Minute // longer than the 90 s after which the API server closes an idle connection
	pingAfter     = 30 * time.Second
	pingTimeout   = 15 * time.Second
)

// Config configures the http.Server of [New].
type Config struct {
	Handler     http.Handler
	TLSConfig   *tls.Config
	Connections *Connections
	BaseContext func(net.Listener) context.Context
	ConnContext func(context.Context) context.Context // of requests on a new connection
	ErrorLog    *log.Logger
}

// New returns an http.Server with timeouts and HTTP/2. Its listener must come from c.Connections.Listen.
func New(c Config) *http.Server {
	main := c.httpServer()
	main.TLSConfig = c.TLSConfig
	main.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) { serveHTTP2(conn, c.httpServer()) },
	}
	return main
}

func (c *Config) httpServer() *http.Server {
	return &http.Server{
		Handler:           c.Handler,
		ReadHeaderTimeout: HeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      WriteTimeout,
		IdleTimeout:       IdleTimeout,
		MaxHeaderBytes:    64 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 250,
			SendPingTimeout:      pingAfter,
			PingTimeout:          pingTimeout,
			WriteByteTimeout:     pingAfter,
		},
		BaseContext: c.BaseContext,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return c.ConnContext(WithConnection(ctx, conn))
		},
		ConnState: c.Connections.OnState,
		ErrorLog:  c.ErrorLog,
	}
}
