// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admitkit/admitkit/internal/quickack"
	"github.com/admitkit/admitkit/internal/textutil"
)

// A urlCaller calls a webhook at a URL.
type urlCaller struct {
	client     *http.Client
	url        string
	connection *Connection
	answered   bool // the server has responded at least once
}

const (
	// mostAnswerBytes limits how much of a response is read. The API server has no such limit.
	mostAnswerBytes = 64 << 20
	// beforeRetry is the time that a restarted server gets to listen again.
	beforeRetry = time.Second
)

// DefaultClient returns the HTTP client for webhooks that are declared without one. It resembles the API server's
// client. But it ignores the proxy of the environment, which is not meant for a server under test.
var DefaultClient = sync.OnceValue(func() *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext:         quickack.Dial,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
	}}
})

// Call sends the body to the webhook. It repeats the call once if the connection broke, or if a server that has
// responded before cannot be reached: a network fault must not fail a law.
func (c *urlCaller) Call(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	status, answer, code, err := c.try(ctx, body)
	switch {
	case code != "" && c.answered && c.again(ctx, beforeRetry):
		status, answer, code, err = c.try(ctx, body)
	case code == "" && err != nil && connectionBroke(err) && c.again(ctx, 0):
		if status, answer, code, err = c.try(ctx, body); code != "" && c.answered {
			status, answer, code, err = c.afterRestart(ctx, body) // the call may have ended the process, and a supervisor may restart it
		}
	}
	if err == nil && !c.answered && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) {
		code, err = WrongPath, fmt.Errorf("HTTP %d: %s", status, textutil.FirstLine(string(clipped(answer))))
	}
	if code != "" && !errors.Is(ctx.Err(), context.Canceled) {
		c.connection.cannotReach(c.url, code, err, c.answered)
	}
	c.answered = c.answered || err == nil
	return status, answer, err
}

// restarts are the waiting times before each attempt to call a server whose process ended during a call.
var restarts = []time.Duration{beforeRetry, 2 * time.Second, 4 * time.Second}

// afterRestart sends the body until the server responds, after each of the waiting times in restarts. If the server
// does not come back, it was lost in this call.
func (c *urlCaller) afterRestart(ctx context.Context, body []byte) (status int, answer []byte, code FailureCode, err error) {
	for _, wait := range restarts {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		if status, answer, code, err = c.try(ctx, body); code == "" {
			return status, answer, code, err
		}
	}
	if c.connection != nil {
		c.connection.Crashed = true
	}
	return status, answer, code, err
}

// again counts a repeated call, and waits before it. It returns false if the context ends first.
func (c *urlCaller) again(ctx context.Context, wait time.Duration) bool {
	if c.connection != nil {
		c.connection.Repeated++
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// try makes one call. If no connection can be made, it returns a code.
func (c *urlCaller) try(ctx context.Context, body []byte) (status int, answer []byte, code FailureCode, err error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	r, err := newRequest(ctx, c.url, body)
	if err != nil {
		return 0, nil, "", err
	}
	response, err := c.client.Do(r)
	if err != nil {
		if code = unreachableCode(err); code == "" && !connected.Load() {
			code = NoConnection
		}
		return 0, nil, code, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(response.Body, mostAnswerBytes+1))
	if len(answer) > mostAnswerBytes {
		return 0, nil, "", fmt.Errorf("the answer is larger than %d MiB", mostAnswerBytes>>20)
	}
	return response.StatusCode, answer, "", err
}
