// SPDX-License-Identifier: Apache-2.0

// Package proof holds the proofs that no call fails: programs that run replicas of a webhook
// as processes behind a balancer, one real API server that calls them, and a steady load, and
// then do to the replicas what happens to them in a cluster. Each proof has a check that it can
// fail: the same with a server, or a rotation of certificates, that is as naive as many are.
//
// `make proof` runs the short form, `make soak` the long one. ADMITKIT_SEED repeats what is
// random; the seed is printed.
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
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/admitkit/admitkit/internal/apiserver"
)

// What all proofs share.
var (
	server  *apiserver.Server
	clients *kubernetes.Clientset
	// binary is the program of test/proof/replica.
	binary string
	soak   = os.Getenv("ADMITKIT_SOAK") != ""
	seed   = newSeed()
)

// scale returns how much of something the form of the proof asks for.
func scale[T any](short, long T) T {
	if soak {
		return long
	}
	return short
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	ctrl.SetLogger(logr.FromSlogHandler(slog.DiscardHandler)) // envtest asks for one
	log.SetOutput(io.Discard)                                 // clients tell here that a server said goodbye
	fmt.Printf("seed %d (ADMITKIT_SEED repeats it)\n", seed)
	dir, err := os.MkdirTemp("", "proof-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "replica")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./replica")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1, fmt.Errorf("cannot build the replica: %w", err)
	}
	if server, err = apiserver.Start(ctx, nil); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	config := rest.CopyConfig(server.Config)
	config.QPS, config.Burst = -1, -1
	if clients, err = kubernetes.NewForConfig(config); err != nil {
		return 1, err
	}
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

// newRandom returns a source of its own for each part of a proof, so that one part does not
// depend on how often another asked.
func newRandom(part string) *rand.Rand {
	state := seed
	for _, b := range []byte(part) {
		state = state*1099511628211 + uint64(b)
	}
	return rand.New(rand.NewPCG(seed, state))
}

// progress tells of a long run that it goes on.
func progress(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
