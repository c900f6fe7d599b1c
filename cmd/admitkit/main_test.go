// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/admitkit/admitkit/internal/apiserver/need"
)

var update = flag.Bool("update", false, "update the transcripts and docs/cli with the current output")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"admitkit": main, "served": serveBeside})
}

// TestTranscripts runs the scripts in testdata, each in a folder of its own.
func TestTranscripts(t *testing.T) {
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output() // the defaults depend on $HOME, which testscript changes
	if err != nil {
		t.Fatal(err)
	}
	goCache, goModCache, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Condition: func(name string) (bool, error) {
			if name != "apiserver" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return need.Runs(), nil
		},
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"KUBEBUILDER_ASSETS", "GOPROXY", "GOFLAGS", "GONOSUMDB", "GOSUMDB"} {
				if value, set := os.LookupEnv(name); set {
					e.Setenv(name, value)
				}
			}
			e.Setenv("GOCACHE", goCache)
			e.Setenv("GOMODCACHE", goModCache)
			e.Setenv("ADMITKIT_SRC", source) // for scripts whose modules require admitkit
			return nil
		},
	})
}
