// SPDX-License-Identifier: Apache-2.0

// Package play runs an API server for a person, or for one command.
package play

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/cli/problem"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// Options are the flags of the command.
type Options struct {
	Port         int
	Flags        []string // name=value
	FeatureGates string
	AuditLog     string
	// Command is run with the server, and its end is the end; empty: Ctrl-C is.
	Command []string
}

// policy has the audit log hold what webhooks did, and little else.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [system:apiserver]
- level: None
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection, connect]
- level: Metadata
`

// Run runs the server until ctx ends, or the command does.
func Run(ctx context.Context, s *screen.Screen, o Options) error {
	flags, err := o.flags()
	if err != nil {
		return err
	}
	files, err := o.files(flags)
	if err != nil {
		return err
	}
	began := time.Now()
	server, err := apiserver.Run(ctx, apiserver.Options{Flags: flags, Files: files, Port: o.Port})
	if err != nil {
		return err
	}
	if err = o.with(ctx, s, server, began); ctx.Err() != nil && len(o.Command) == 0 {
		err = nil // Ctrl-C is how it ends
	}
	return errors.Join(err, server.Stop())
}

func (o *Options) with(ctx context.Context, s *screen.Screen, server *apiserver.Server, began time.Time) error {
	kubeconfig, err := server.WriteFile("kubeconfig", server.Kubeconfig)
	if err != nil {
		return err
	}
	version, err := server.Version(ctx)
	if err != nil {
		return err
	}
	if len(o.Command) > 0 {
		s.Note("kube-apiserver %s is ready after %.1fs", version, time.Since(began).Seconds())
		return o.run(ctx, s, server, kubeconfig)
	}
	fmt.Fprintf(s.Out, "export KUBECONFIG=%s\n", kubeconfig)
	if _, err := exec.LookPath("kubectl"); err != nil {
		fmt.Fprintf(s.Out, "export PATH=%s:$PATH  # kubectl\n", server.Dir)
	}
	s.Note("kube-apiserver %s is ready at %s after %.1fs; Ctrl-C ends it and removes its data", version, server.Config.Host, time.Since(began).Seconds())
	select {
	case <-ctx.Done():
		return nil
	case <-server.Done():
		return server.Err()
	}
}

// run runs the command. Ctrl-C reaches it by the terminal; it has a moment to end before it is made to.
func (o *Options) run(ctx context.Context, s *screen.Screen, server *apiserver.Server, kubeconfig string) error {
	const moment = 3 * time.Second
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	path := os.Getenv("PATH") + string(os.PathListSeparator) + server.Dir // for kubectl, if there is none
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+path)
	if cmd.Err != nil && filepath.Base(o.Command[0]) == o.Command[0] {
		if own, err := exec.LookPath(filepath.Join(server.Dir, o.Command[0])); err == nil {
			cmd.Path, cmd.Err = own, nil
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	if err := cmd.Start(); err != nil {
		return problem.New("cannot run the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return exitOf(err)
	case <-server.Done():
		_ = cmd.Process.Kill() // it may just have ended
		_ = exitOf(<-ended)    // by us
		return server.Err()
	case <-ctx.Done():
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
		select {
		case err := <-ended:
			return exitOf(err)
		case <-time.After(moment):
			_ = cmd.Process.Signal(signal) // it may just have ended
		}
	}
	return exitOf(<-ended)
}

// exitOf ends this program as the command ended.
func exitOf(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return problem.New("cannot run the command: %w", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return problem.Exit(128 + int(status.Signal())) // as shells do
	}
	return problem.Exit(exit.ExitCode())
}

// flags returns those of kube-apiserver.
func (o *Options) flags() (map[string][]string, error) {
	flags := map[string][]string{}
	for _, text := range o.Flags {
		name, value, found := strings.Cut(strings.TrimLeft(text, "-"), "=")
		if !found || name == "" {
			return nil, problem.New("--flag %s: not name=value", text).Hint("--flag v=4")
		}
		flags[name] = append(flags[name], value)
	}
	if o.FeatureGates != "" {
		flags["feature-gates"] = append(flags["feature-gates"], o.FeatureGates)
	}
	return flags, nil
}

// files returns the content of those that flags name.
func (o *Options) files(flags map[string][]string) (map[string][]byte, error) {
	if o.AuditLog == "" {
		return nil, nil
	}
	file, err := filepath.Abs(o.AuditLog)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return nil, problem.New("--audit-log %s: there is no folder %s", o.AuditLog, filepath.Dir(o.AuditLog)).Hint("mkdir -p %s", filepath.Dir(o.AuditLog))
	}
	flags["audit-log-path"] = []string{file}
	return map[string][]byte{"audit-policy-file": []byte(policy)}, nil // unless a flag says otherwise
}
