// SPDX-License-Identifier: Apache-2.0

// Package proof tests which calls fail when replicas restart, die, rotate their certificates or are
// overloaded. Each proof runs replicas of a webhook as processes behind a balancer. A real API server
// calls them at a steady rate. Further tests show that the proofs can fail: with a naive server, with
// a naive rotation of certificates, or without a surviving replica.
//
// `make proof` runs the short form, `make soak` the long one. `make proof-apiservers` runs three API servers on one etcd
// behind a balancer, one of which sees each change a second late. Each run prints its seed, and
// ADMITKIT_SEED repeats a run.
package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// The API servers, the program and the seed are the same for all proofs.
var (
	plane   *controlPlane
	clients *kubernetes.Clientset // of the first API server
	binary  string                // path of this test binary, built without the race detector
	soak    = os.Getenv("ADMITKIT_SOAK") != ""
	seed    = newSeed()
)

// scale returns short for `make proof` and long for `make soak`.
func scale[T any](short, long T) T {
	if soak {
		return long
	}
	return short
}

// asReplica is the argument with which the test binary runs one replica instead of the tests.
const asReplica = "replica"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == asReplica {
		if err := runReplica(); err != nil {
			fmt.Fprintln(os.Stderr, "replica:", err)
			os.Exit(1)
		}
		return
	}
	need.APIServerForAll()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	ctrl.SetLogger(logr.FromSlogHandler(slog.DiscardHandler)) // envtest warns without a logger
	log.SetOutput(io.Discard)                                 // net/http logs closed connections here
	fmt.Printf("seed %d (ADMITKIT_SEED repeats it)\n", seed)
	dir, err := os.MkdirTemp("", "proof-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "replica")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1, fmt.Errorf("cannot build the replica: %w", err)
	}
	if plane, err = startControlPlane(ctx, numberOfAPIServers()); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.stop()) }()
	clients = plane.clients[0]
	code = m.Run()
	printTable(os.Stdout)
	return code, nil
}

func newSeed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("ADMITKIT_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(time.Now().UnixNano())
}

// newRandom returns the random source for one part of a proof. Each part has its own source, so that no
// part changes the random numbers of another.
func newRandom(part string) *rand.Rand {
	state := seed
	for _, b := range []byte(part) {
		state = state*1099511628211 + uint64(b)
	}
	return rand.New(rand.NewPCG(seed, state))
}

// progress prints a line during a long run.
func progress(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
