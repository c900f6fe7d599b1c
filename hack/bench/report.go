// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/admitkit/admitkit/hack/bench/quality"
	"github.com/admitkit/admitkit/hack/bench/wire"
)

// A Report has all measurements of one run.
type Report struct {
	Go         string
	Platform   string
	CPUs       int
	Modules    map[string]string // versions of the compared modules
	Admissions []Figure          `json:",omitempty"`
	Wire       []wire.Figure     `json:",omitempty"`
	Patches    []quality.Result  `json:",omitempty"`
}

// compared lists the modules whose versions a report shows.
var compared = []string{
	"sigs.k8s.io/controller-runtime", "github.com/slok/kubewebhook/v2", "k8s.io/api",
	"gomodules.xyz/jsonpatch/v2", "github.com/wI2L/jsondiff",
}

func newReport() *Report {
	r := &Report{
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Modules: map[string]string{},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			for _, name := range compared {
				if m.Path == name {
					r.Modules[name] = m.Version
				}
			}
		}
	}
	return r
}

// subjects describes the compared modules in one line.
func (r *Report) subjects() string {
	parts := []string{r.Go, r.Platform}
	for _, name := range compared {
		if version := r.Modules[name]; version != "" {
			parts = append(parts, name+" "+version)
		}
	}
	return strings.Join(parts, ", ")
}

func (r *Report) writeJSON(file string) error {
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(out, '\n'), 0o600)
}
