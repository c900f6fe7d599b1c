// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"io"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/problem"
)

// Options are the flags of "admitkit dev".
type Options struct {
	// Package is the package with the hooks: a folder or an import path, relative to Dir. The default is ./hooks if it
	// exists, and otherwise Dir.
	Dir, Package string
	// Namespace is the namespace that the hooks get as Deps.Namespace. The default is "default".
	Namespace string
	// URL is the address of a running webhook. CAFile has its CA, and Files have its registration.
	URL, CAFile string
	Files       []string
	// Apply names files and folders with objects to apply at the start.
	Apply []string
	// JSON selects one line of JSON for each event.
	JSON bool

	// Flags are flags for kube-apiserver, as NAME=VALUE. Port is its port; 0 means any free port.
	Flags []string
	Port  int

	// Cluster registers the hooks in an existing cluster. The other fields below apply only then.
	Cluster   bool
	Where     cluster.Flags
	Advertise string
	Fail, Yes bool
}

func (o *Options) check() error {
	switch {
	case o.URL == "" && (len(o.Files) > 0 || o.CAFile != ""):
		return problem.New("--webhook-configuration and --ca-file need --url")
	case o.URL != "" && o.Namespace != "":
		return problem.New("--namespace cannot be used with --url: it is for hooks that dev builds")
	case o.URL != "" && o.Package != "":
		return problem.New("PACKAGE and --url exclude each other")
	case o.URL != "" && len(o.Files) == 0:
		return problem.New("--url needs --webhook-configuration, a file with the registration of the webhook").
			Hint("admitkit dev --url %s --webhook-configuration FILE", o.URL)
	case o.Cluster && (len(o.Flags) > 0 || o.Port != 0):
		return problem.New("--flag and --port cannot be used with --cluster: they configure an API server that dev starts")
	case !o.Cluster && (o.Advertise != "" || o.Fail || o.Yes || o.Where.Context != "" || o.Where.Kubeconfig != ""):
		return problem.New("--advertise, --fail, --yes, --context and --kubeconfig need --cluster")
	}
	if o.Dir == "" {
		o.Dir = "."
	}
	if o.URL == "" && o.Package == "" {
		o.Package = gohooks.Default(o.Dir)
	}
	return nil
}

func (o *Options) buildOptions(log io.Writer) gohooks.Options {
	return gohooks.Options{Dir: o.Dir, Package: o.Package, Namespace: o.Namespace, Log: log}
}

// hooksSource returns the package or the URL of the hooks, for messages.
func (o *Options) hooksSource() string { return cmp.Or(o.Package, o.URL) }
