// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the output of commands into the transcripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"admitkit": main})
}

// TestTranscripts runs the command lines of testdata, each in a folder and a process of its own.
func TestTranscripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"KUBEBUILDER_ASSETS", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "GONOSUMDB", "GOSUMDB"} {
				if value, set := os.LookupEnv(name); set {
					e.Setenv(name, value)
				}
			}
			return nil
		},
	})
}
