// SPDX-License-Identifier: Apache-2.0

// Apiserver builds kube-apiserver, etcd and kubectl for the scripts of this repository, as "admitkit
// apiserver install" does. It imports nothing from Kubernetes, so it compiles fast.
//
//	go run ./hack/apiserver                     build what is missing, print the folder
//	go run ./hack/apiserver --also BINARY       also build another Kubernetes binary; can be repeated
//	go run ./hack/apiserver --kubernetes 1.35   build another release
//	go run ./hack/apiserver --print-path        print the folder only
//	go run ./hack/apiserver --update k8s.io/kubernetes@v1.36.4 [M@V ...]  pin other versions of modules, and tidy
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/admitkit/admitkit/internal/apiserver/build"
	"github.com/admitkit/admitkit/internal/problem"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	if ctx.Err() != nil {
		err = problem.New("interrupted")
	}
	stop()
	if err != nil {
		say("%v", err)
		for _, hint := range problem.Hints(err) {
			say("hint: %s", hint)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var also []string
	kubernetes := ""
	if len(args) >= 2 && args[0] == "--kubernetes" {
		kubernetes, args = args[1], args[2:]
	}
	for len(args) >= 2 && args[0] == "--also" {
		also, args = append(also, args[1]), args[2:]
	}
	switch {
	case len(args) == 0:
		dir, err := build.Build(ctx, build.Options{Note: say, Step: everyFewSeconds(), Also: also, Kubernetes: kubernetes})
		if err == nil {
			fmt.Println(dir)
		}
		return err
	case args[0] == "--print-path" && len(args) == 1:
		dir, err := build.Target(kubernetes)
		if err == nil {
			fmt.Println(dir)
		}
		return err
	case args[0] == "--update" && len(args) > 1:
		return update(ctx, args[1:])
	}
	return problem.New("usage: build.sh [--kubernetes VERSION] [--print-path | --also BINARY…]")
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "apiserver: "+format+"\n", args...) }

func everyFewSeconds() func(format string, args ...any) {
	last := time.Now()
	return func(format string, args ...any) {
		if time.Since(last) >= 15*time.Second {
			last = time.Now()
			say("  "+format, args...)
		}
	}
}
