// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/test/corpus"
)

// inTranscripts is the address that transcripts show, in arguments and output, in place of the server's real address.
const inTranscripts = "127.0.0.1:9443"

// serveBeside is the main function of the program "served" in transcripts. It serves a webhook while it runs a
// command: "exec served P10 admitkit verify --url https://127.0.0.1:9443/mutate". The first argument is a prefix of
// a case's name in the corpus, or a name in wrongServers. The server's CA is in the file ca.crt.
func serveBeside() {
	code, err := serveAndRun(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "served:", err)
		code = 3
	}
	os.Exit(code)
}

func serveAndRun(what string, line []string) (int, error) {
	handler, err := handlerOf(what)
	if err != nil {
		return 0, err
	}
	ca, err := devcert.NewCA()
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile("ca.crt", ca.Bundle, 0o600); err != nil {
		return 0, err
	}
	hosts := []string{"127.0.0.1"}
	if what == "other-name" {
		hosts = []string{"hook.shop", "hook.shop.svc"}
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if server.TLS, err = ca.Serving(hosts...); err != nil {
		return 0, err
	}
	if what == "client-certificate" {
		server.TLS.ClientAuth = tls.RequireAnyClientCert
	}
	switch what {
	case "no-tls":
		server.Start()
	case "breaks-off":
		server.Listener = plain{tls.NewListener(server.Listener, server.TLS)}
		server.Start()
	default:
		server.StartTLS()
	}
	defer server.Close()
	return runBeside(server.Listener.Addr().String(), line)
}

// A plain is a TLS listener that hides from net/http that its connections use TLS. Otherwise Go's server would answer a
// client without TLS with an explanation, which servers in other languages do not send.
type plain struct{ net.Listener }

// Accept implements net.Listener.
func (p plain) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	return struct{ net.Conn }{c}, err
}

// runBeside runs a command and replaces the server's address in its arguments and output.
func runBeside(address string, line []string) (int, error) {
	for i := range line {
		line[i] = strings.ReplaceAll(line[i], inTranscripts, address)
	}
	command := exec.Command(line[0], line[1:]...)
	var out, complaints strings.Builder
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, &out, &complaints
	signal.Ignore(os.Interrupt) // the command handles it; this program ends after the command
	err := command.Run()
	for to, text := range map[io.Writer]string{os.Stdout: out.String(), os.Stderr: complaints.String()} {
		if _, err := io.WriteString(to, strings.ReplaceAll(text, address, inTranscripts)); err != nil {
			return 0, err
		}
	}
	if command.ProcessState != nil {
		return command.ProcessState.ExitCode(), nil
	}
	return 0, err
}

// wrongServers maps names to handlers that are not webhooks.
var wrongServers = map[string]http.HandlerFunc{
	"page": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html>\n<title>Welcome to nginx!</title>")
	},
	"nothing":     func(http.ResponseWriter, *http.Request) {},
	"no-response": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok"}`) },
	"bytes":       func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "\x00\x01\xff\x1b[31m") },
	"found":       http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP,
	"loop":        http.RedirectHandler("/mutate", http.StatusTemporaryRedirect).ServeHTTP,
	"unauthorized": func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	},
	"wrong-path": http.NotFound,
	"not-implemented": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusNotImplemented)
		fmt.Fprint(w, "<!doctype html>\n<title>Error response</title>")
	},
	"slow": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
}

func handlerOf(what string) (http.Handler, error) {
	if wrong, ok := wrongServers[what]; ok {
		return wrong, nil
	}
	name := what
	switch what {
	case "no-tls", "breaks-off", "other-name", "client-certificate", "moved", "token", "dies", "breaks":
		name = "P10 volume once"
	}
	for _, c := range slices.Concat(corpus.Patterns(), corpus.Lookalikes()) {
		if strings.HasPrefix(c.Name, name) {
			return around(what, c.New()), nil
		}
	}
	return nil, fmt.Errorf("nothing is called %q: there are cases of the corpus, and %v", what, slices.Sorted(maps.Keys(wrongServers)))
}

// around wraps the webhook in another handler, depending on what: for example one that redirects or checks a token.
func around(what string, handler http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	switch what {
	case "moved":
		mux.Handle("/mutate", http.RedirectHandler("/here", http.StatusTemporaryRedirect))
	case "token":
		mux.HandleFunc("/mutate", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				http.Error(w, "who are you?", http.StatusForbidden)
				return
			}
			handler.ServeHTTP(w, r)
		})
	case "breaks":
		calls := 0
		mux.HandleFunc("/mutate", func(w http.ResponseWriter, r *http.Request) {
			if calls++; calls%7 == 0 {
				panic(http.ErrAbortHandler)
			}
			handler.ServeHTTP(w, r)
		})
	case "dies":
		calls := 0
		mux.HandleFunc("/mutate", func(w http.ResponseWriter, r *http.Request) {
			if calls++; calls > 100 {
				_ = r.Context().Value(http.ServerContextKey).(*http.Server).Close()
			}
			handler.ServeHTTP(w, r)
		})
	}
	return mux
}
