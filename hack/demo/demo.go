// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/admitkit/admitkit/examples/deny-policy/policy"
	"github.com/admitkit/admitkit/examples/sidecar-injector/inject"
	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A demo holds the API server and the hooks that run during the stories.
type demo struct {
	*screen
	cluster *testcluster.Cluster
	ledger  string // path of the ledger file
	stops   []func() error
}

func start(ctx context.Context, s *screen) (d *demo, err error) {
	d = &demo{screen: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	began := time.Now()
	s.progress("Starting etcd and kube-apiserver on 127.0.0.1 ...")
	if d.cluster, err = testcluster.Start(ctx); err != nil {
		return d, err
	}
	d.stops = append(d.stops, d.cluster.Stop)
	version, err := d.version(ctx)
	if err != nil {
		return d, err
	}
	s.progress("kube-apiserver %s is ready after %s.", version, time.Since(began).Round(100*time.Millisecond))

	if _, err = d.cluster.Kubectl(ctx, "", "apply", "-f", folder+"namespace.yaml"); err != nil {
		return d, err // the namespace must exist before any rule applies
	}
	dir, err := os.MkdirTemp("", "demo-")
	if err != nil {
		return d, err
	}
	d.stops = append(d.stops, func() error { return os.RemoveAll(dir) })
	d.ledger = filepath.Join(dir, "ledger.jsonl")
	if err = d.serve(ctx, "sidecar-injector", inject.Hooks("registry.example.com/proxy:v1.0.0")); err != nil {
		return d, err
	}
	return d, d.serve(ctx, "deny-policy", policy.Hooks(&policy.FileLedger{Path: d.ledger}))
}

func (d *demo) serve(ctx context.Context, example string, hooks []*webhook.Hook) error {
	d.progress("Serving %d hooks of examples/%s over TLS, registering them by URL ...", len(hooks), example)
	stop, err := d.cluster.Serve(ctx, example, hooks...)
	if err == nil {
		d.stops = append(d.stops, stop)
		d.progress("The API server calls them.")
	}
	return err
}

// stop undoes the steps of start in reverse order.
func (d *demo) stop() error {
	var errs []error
	for i := range d.stops {
		errs = append(errs, d.stops[len(d.stops)-1-i]())
	}
	return errors.Join(errs...)
}

func (d *demo) version(ctx context.Context) (string, error) {
	out, err := d.cluster.Kubectl(ctx, "", "get", "--raw", "/version")
	if err != nil {
		return "", err
	}
	var v struct{ GitVersion string }
	err = json.Unmarshal([]byte(out), &v)
	return v.GitVersion, err
}

// kubectl runs a command and shows the command and its output. It checks that the command succeeds or fails as
// expected, and that the output has these texts.
func (d *demo) kubectl(ctx context.Context, succeeds bool, texts []string, args ...string) error {
	d.command("kubectl " + strings.Join(args, " "))
	out, err := d.cluster.Kubectl(ctx, "", args...)
	d.text(out)
	switch {
	case err != nil && succeeds:
		return err
	case err == nil && !succeeds:
		return fmt.Errorf("kubectl %s succeeded; it should have been denied", strings.Join(args, " "))
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			return fmt.Errorf("kubectl %s did not print %q", strings.Join(args, " "), text)
		}
	}
	return nil
}
