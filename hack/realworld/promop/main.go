// SPDX-License-Identifier: Apache-2.0

// Command promop serves the admission webhook of Prometheus Operator on a loopback address, which it prints.
package main

import (
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus-operator/prometheus-operator/pkg/admission"
)

func main() {
	log.Fatal(run())
}

func run() error {
	mux := http.NewServeMux()
	admission.New(slog.New(slog.DiscardHandler)).Register(mux)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mux)
}
