// SPDX-License-Identifier: Apache-2.0

// Package play runs an API server for interactive use, or for the duration of one command.
package play

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

// Options are the flags of "admitkit apiserver start".
type Options struct {
	Kubernetes   string // a release, as for build.Choose
	Port         int
	Flags        []string // name=value
	FeatureGates string
	AuditLog     string
	// Command is a command to run. The server stops when the command ends. If Command is empty, the server runs until
	// ctx ends.
	Command []string
}

// policy is an audit policy that records what "admitkit audit" reads, and little else.
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

// Run runs the server until ctx or the command ends.
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
	server, err := apiserver.Run(ctx, apiserver.Options{Flags: flags, Files: files, Port: o.Port, Kubernetes: o.Kubernetes})
	if err != nil {
		return err
	}
	if err = o.use(ctx, s, server, began); ctx.Err() != nil && len(o.Command) == 0 {
		err = nil // Ctrl-C is the normal end
	}
	return errors.Join(err, server.Stop())
}

// use runs the command with a started server. Without a command, it prints how to connect and waits.
func (o *Options) use(ctx context.Context, s *screen.Screen, server *apiserver.Server, began time.Time) error {
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
	s.Note("kube-apiserver %s is ready at %s after %.1fs; Ctrl-C stops it and deletes its data", version, server.Config.Host, time.Since(began).Seconds())
	select {
	case <-ctx.Done():
		return nil
	case <-server.Done():
		return server.Err()
	}
}

// run runs the command. The terminal sends Ctrl-C to the command too. When ctx ends, the command gets some time to
// end by itself, then SIGTERM, then SIGKILL.
func (o *Options) run(ctx context.Context, s *screen.Screen, server *apiserver.Server, kubeconfig string) error {
	const grace = 3 * time.Second
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	path := os.Getenv("PATH") + string(os.PathListSeparator) + server.Dir // last, so that the user's kubectl comes first
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
	var waitErr error // written before ended is closed
	ended := make(chan struct{})
	go func() {
		waitErr = cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return exitOf(waitErr)
	case <-server.Done():
		_ = cmd.Process.Kill() // the process may have ended already
		<-ended
		return server.Err()
	case <-ctx.Done():
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
		select {
		case <-ended:
			return exitOf(waitErr)
		case <-time.After(grace):
			_ = cmd.Process.Signal(signal) // the process may have ended already
		}
	}
	<-ended
	return exitOf(waitErr)
}

// exitOf returns the error that ends this program with the exit code of the command.
func exitOf(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return problem.New("cannot run the command: %w", err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return problem.Exit(128 + int(status.Signal())) // the convention of shells
	}
	return problem.Exit(exit.ExitCode())
}

// flags returns the flags for kube-apiserver.
func (o *Options) flags() (map[string][]string, error) {
	flags, err := apiserver.ParseFlags(o.Flags)
	if err == nil && o.FeatureGates != "" {
		flags["feature-gates"] = append(flags["feature-gates"], o.FeatureGates)
	}
	return flags, err
}

// files returns the content of files for flags of kube-apiserver, by flag. It adds the flag for the audit log.
func (o *Options) files(flags map[string][]string) (map[string][]byte, error) {
	if o.AuditLog == "" {
		return nil, nil
	}
	file, err := filepath.Abs(o.AuditLog)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return nil, problem.New("--audit-log %s: the folder %s does not exist", o.AuditLog, filepath.Dir(o.AuditLog)).Hint("mkdir -p %s", filepath.Dir(o.AuditLog))
	}
	flags["audit-log-path"] = []string{file}
	return map[string][]byte{"audit-policy-file": []byte(policy)}, nil // --flag can replace it
}
