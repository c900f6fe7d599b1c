// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/pkg/certs"
)

// runReplica runs one replica of a webhook.
func runReplica() error {
	settings, err := readSettings(os.Stdin)
	if err != nil {
		return err
	}
	// The signal must not end the process before the servers have drained.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logTo(os.Stderr, settings.Name)
	if settings.MemoryGoal > 0 {
		debug.SetMemoryLimit(settings.MemoryGoal)
	}
	source, err := newSource(settings)
	if err != nil {
		return err
	}
	sourceEnded := startSource(ctx, source)
	stats := &stats{source: source}
	statsAddr, err := stats.serve()
	if err != nil {
		return err
	}
	serve, addr, err := newServer(settings, source, stats)
	if err != nil {
		return err
	}
	hello, err := json.Marshal(Hello{Hooks: addr, Stats: statsAddr})
	if err != nil {
		return err
	}
	fmt.Println(string(hello))
	return errors.Join(serve(ctx), <-sourceEnded)
}

// readSettings reads the settings. It ends the process when standard input ends, because the proof has ended.
func readSettings(in io.Reader) (Settings, error) {
	var s Settings
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&s); err != nil {
		return s, fmt.Errorf("cannot read the settings on standard input: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(3)
	}()
	return s, nil
}

func logTo(w io.Writer, name string) {
	handler := slog.NewTextHandler(w, &slog.HandlerOptions{}).WithAttrs([]slog.Attr{slog.String("replica", name)})
	slog.SetDefault(slog.New(handler))
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	klog.SetSlogLogger(slog.New(handler))
}

// startSource runs the source until ctx is done, and ends the process if the source fails. During the drain
// the server still uses the last certificate.
func startSource(ctx context.Context, source certs.Source) <-chan error {
	ended := make(chan error, 1)
	go func() {
		err := source.Start(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, "replica:", err)
			os.Exit(1)
		}
		ended <- err
	}()
	return ended
}

func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
