// SPDX-License-Identifier: Apache-2.0

// Package apiserver runs a real kube-apiserver and etcd on this machine, on loopback only.
//
// Stop ends both processes and removes their data. If the program is killed, Linux kills both processes too. On other
// systems, the next call of Run ends them (see removeLeftovers).
package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/apiserver/build"
	"github.com/admitkit/admitkit/internal/problem"
)

// Assets returns the folder with kube-apiserver, etcd and kubectl, as build.Find does.
func Assets(context.Context) (string, error) { return build.Find("") }

// A Server is a running API server with its etcd.
type Server struct {
	// Config connects clients as a user of the group system:masters.
	Config *rest.Config
	// Kubeconfig has the same connection, for kubectl.
	Kubeconfig []byte
	// Dir is the folder with the binaries.
	Dir string
	// Etcd is the URL of etcd. Another API server can use it, too: see Options.Etcd.
	Etcd string

	data      *dataDir
	processes []*process // etcd, then the API server
	done      chan struct{}
	endOnce   sync.Once // guards the close of done
	stop      sync.Once
}

// Options configure the API server. The zero value is the default configuration on a free port.
type Options struct {
	// Flags are flags for kube-apiserver, such as {"v": {"2"}}. They replace default flags of the same name.
	Flags map[string][]string
	// Files holds the content of files, by the flag that names the file, such as {"audit-policy-file": …}.
	Files map[string][]byte
	// Etcd is the URL of the etcd of another Server. If empty, the Server runs its own etcd.
	Etcd string
	// Port is the port to listen on; 0 is a free port.
	Port int
	// Kubernetes is the release of the binaries, as for build.Choose. The empty string is the default.
	Kubernetes string
}

// Start runs an API server with these extra flags and waits until it is ready. Stop it with Stop.
func Start(ctx context.Context, flags map[string][]string) (*Server, error) {
	return Run(ctx, Options{Flags: flags})
}

// Run runs an API server and waits until it is ready, or ctx ends. Stop it with Stop.
func Run(ctx context.Context, o Options) (*Server, error) {
	dir, err := build.Find(o.Kubernetes)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if o.Port != 0 && !free(o.Port) {
		return nil, problem.New("port %d is in use", o.Port)
	}
	removeLeftovers()
	for attempt := 1; ; attempt++ {
		s, err := run(ctx, dir, o)
		if err == nil {
			return s, nil
		}
		if attempt == 5 || !errors.Is(err, errPortTaken) || ctx.Err() != nil {
			return nil, fmt.Errorf("cannot start the API server: %w", err)
		}
	}
}

func run(ctx context.Context, binaries string, o Options) (_ *Server, err error) {
	data, err := newDataDir()
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: binaries, data: data, done: make(chan struct{})}
	defer func() {
		if err != nil {
			_ = s.Stop() // its error matters less than err
		}
	}()
	if s.Etcd = o.Etcd; s.Etcd == "" {
		if s.Etcd, err = s.startEtcd(ctx); err != nil {
			return nil, err
		}
	}
	return s, s.startAPIServer(ctx, o)
}

// Done returns a channel that is closed when the API server has ended, by Stop or otherwise.
func (s *Server) Done() <-chan struct{} { return s.done }

func (s *Server) signalDone() { s.endOnce.Do(func() { close(s.done) }) }

// Err returns why the API server or etcd has ended without Stop, or nil.
func (s *Server) Err() error {
	for _, p := range s.processes {
		if err := p.crash(); err != nil {
			return err
		}
	}
	return nil
}

// Version requests the server's version, such as v1.36.3.
func (s *Server) Version(ctx context.Context) (string, error) {
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Config.Host+"/version", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // nothing was written
	var v struct{ GitVersion string }
	err = json.NewDecoder(response.Body).Decode(&v)
	return v.GitVersion, err
}

// Kubectl returns a command that runs kubectl with a kubeconfig file.
func (s *Server) Kubectl(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Dir, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return cmd
}

// StartControllers starts kube-controller-manager with only these controllers, such as namespace-controller, or with "*"
// for all that run by default. Stop ends it. The binary must have been built with
// hack/apiserver/build.sh --also kube-controller-manager.
func (s *Server) StartControllers(names ...string) error {
	return s.startBeside("kube-controller-manager", map[string][]string{"controllers": {strings.Join(names, ",")}})
}

// StartScheduler starts kube-scheduler. Stop ends it. The binary must have been built with
// hack/apiserver/build.sh --also kube-scheduler.
func (s *Server) StartScheduler() error {
	return s.startBeside("kube-scheduler", map[string][]string{})
}

// startBeside starts another program of the control plane.
func (s *Server) startBeside(name string, flags map[string][]string) error {
	kubeconfig, err := s.WriteFile(name+".kubeconfig", s.Kubeconfig)
	if err != nil {
		return err
	}
	flags["kubeconfig"] = []string{kubeconfig}
	flags["secure-port"] = []string{"0"}      // serve nothing
	flags["leader-elect"] = []string{"false"} // one instance needs no lease
	_, err = s.start(name, flags)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.New("%w", err).Hint("hack/apiserver/build.sh --also %s", name)
	}
	return err
}

// Stop ends the API server, etcd and controllers, and removes their data.
func (s *Server) Stop() error {
	var err error
	s.stop.Do(func() {
		for i := len(s.processes) - 1; i >= 0; i-- {
			s.processes[i].end()
		}
		err = s.data.remove()
	})
	return err
}

// WriteFile writes a file, such as a kubeconfig, that Stop removes, and returns its path.
func (s *Server) WriteFile(name string, content []byte) (string, error) {
	path := filepath.Join(s.data.path, name)
	return path, os.WriteFile(path, content, 0o600)
}

// arguments returns flags as command-line arguments, sorted by name.
func arguments(flags map[string][]string) []string {
	var all []string
	for _, name := range sortedKeys(flags) {
		for _, value := range flags[name] {
			all = append(all, "--"+strings.TrimLeft(name, "-")+"="+value)
		}
	}
	return all
}
