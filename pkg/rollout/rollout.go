// SPDX-License-Identifier: Apache-2.0

// Package rollout changes the modes of hooks while the program runs. A file says which hooks enforce, warn, or only
// record what they would do, and for which requests: by operation, by the labels of a Namespace, or for a share of the
// namespaces that grows step by step. The file may be a mounted ConfigMap.
//
//	modes, err := rollout.New("/etc/webhook/modes.yaml", rollout.Options{Namespaces: labelsOf}, hooks...)
//	hooks = modes.Hooks()
//	go modes.Start(ctx)
//
// See [webhook.Mode] for what the modes do.
package rollout

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitkit/admitkit/internal/reload"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Options configure [New]. The zero value works for a file that does not depend on Namespaces.
type Options struct {
	// Namespaces returns the labels of a Namespace. It is required if the file depends on them. If it fails, the call
	// fails, and the failurePolicy decides. It must be safe for concurrent use. A Reader of package reads can read the
	// Namespace.
	Namespaces func(ctx context.Context, name string) (map[string]string, error)
	// Interval is the time between two reads of the file. Zero means 10 s.
	Interval time.Duration
	// Logger reports new modes, and each problem of the file once. The zero value logs nothing.
	Logger logr.Logger
	// Metrics registers the gauge admitkit_rollout_file_valid: 1 if the file is valid, and 0 while the last valid
	// modes are used instead. Nil means no metrics.
	Metrics prometheus.Registerer
}

// A Rollout chooses the modes of hooks from a file. It is safe for concurrent use.
type Rollout struct {
	options Options
	file    *reload.Files[*Config]
	hooks   []*webhook.Hook
	valid   prometheus.Gauge
}

var errNeedsNamespaces = errors.New("the file depends on the labels of Namespaces: set rollout.Options.Namespaces")

// New reads the file and returns a Rollout of the hooks. It returns an error if the file is missing or invalid, names a
// webhook that is not among the hooks, or needs Options.Namespaces. It also fails if the gauge is already registered on
// Options.Metrics. Call Start to follow changes of the file.
func New(file string, o Options, hooks ...*webhook.Hook) (*Rollout, error) {
	r := &Rollout{options: o, valid: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "admitkit_rollout_file_valid",
		Help: "Whether the file with the modes of hooks is valid. If it is 0, the last valid modes are used.",
	})}
	var names []string
	for _, h := range hooks {
		names = append(names, h.Name())
	}
	r.file = reload.New(reload.Options[*Config]{
		Paths: []string{file}, Report: r.report,
		Parse: func(contents [][]byte) (*Config, error) {
			config, err := parse(contents[0], names)
			if err == nil && config.readsNamespaces() && o.Namespaces == nil {
				err = errNeedsNamespaces
			}
			return config, err
		},
	})
	if err := r.file.Load(); err != nil {
		return nil, err
	}
	if o.Metrics != nil {
		if err := o.Metrics.Register(r.valid); err != nil {
			return nil, err
		}
	}
	for _, h := range hooks {
		r.hooks = append(r.hooks, h.WithModes(r.modes(h.Name())))
	}
	return r, nil
}

// Hooks returns copies of the hooks given to New, in the same order. Their modes follow the file. Serve these copies
// instead of the originals.
func (r *Rollout) Hooks() []*webhook.Hook { return r.hooks }

// Start reads the file periodically until ctx ends, and returns nil. While the file is invalid or missing, the last valid
// modes are used.
func (r *Rollout) Start(ctx context.Context) error {
	r.file.Run(ctx, r.options.Interval)
	return nil
}

// report logs a new file, or why it cannot be used.
func (r *Rollout) report(err error) {
	if err != nil {
		r.valid.Set(0)
		r.options.Logger.Error(err, "the modes of hooks cannot be read: the last valid ones are used")
		return
	}
	r.valid.Set(1)
	r.options.Logger.Info("the modes of hooks were read")
}

// modes returns the function that chooses the modes of a webhook.
func (r *Rollout) modes(name string) webhook.ModeFunc {
	return func(ctx context.Context, req *webhook.ModeRequest) (webhook.Mode, error) {
		config, _ := r.file.Get()
		for i := range config.Hooks {
			if h := &config.Hooks[i]; h.Webhook == name {
				return h.modeOf(ctx, req, r.options.Namespaces)
			}
		}
		return webhook.Enforce, nil
	}
}
