// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/admitkit/admitkit/internal/apiserver/build"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// versions holds the versions of this program and of its dependencies.
type versions struct {
	Admitkit   string `json:"admitkit"`
	Kubernetes string `json:"kubernetes"` // version of the API server that admitkit builds, and whose rules it uses
	Libraries  string `json:"libraries"`  // version of k8s.io/api
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func currentVersions() versions {
	v := versions{"unknown", build.Default().Version(), "unknown", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Admitkit = info.Main.Version
		for _, m := range info.Deps {
			if m.Path == "k8s.io/api" {
				v.Libraries = m.Version
			}
		}
	}
	return v
}

func (v versions) String() string {
	return fmt.Sprintf("admitkit %s\nKubernetes %s (libraries %s)\n%s %s\n", v.Admitkit, v.Kubernetes, v.Libraries, v.Go, v.Platform)
}

func newVersion(s *screen.Screen) *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of admitkit, Kubernetes and Go",
		Example: "admitkit version\nadmitkit version -o json",
		GroupID: "tools",
		Args:    arguments(),
	}
	outputs := outputFlag(c, "text", "json")
	c.RunE = func(*cobra.Command, []string) error {
		if err := outputs.Check(s); err != nil {
			return err
		}
		return outputs.Write(s, func(form string, w io.Writer, _ screen.Painter) error {
			if form == "json" {
				return json.NewEncoder(w).Encode(currentVersions())
			}
			_, err := io.WriteString(w, currentVersions().String())
			return err
		})
	}
	return c
}
