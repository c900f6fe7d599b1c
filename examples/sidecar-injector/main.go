// SPDX-License-Identifier: Apache-2.0

// Sidecar-injector is an admission webhook that adds a proxy container to the Pods that request it.
package main

import (
	"context"
	"errors"
	"flag"

	"github.com/admitkit/admitkit/examples/sidecar-injector/inject"
	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func main() { newProgram().Main() }

func newProgram() program.Program {
	var image string
	return program.Program{
		Name: "sidecar-injector",
		Flags: func(flags *flag.FlagSet) {
			flags.StringVar(&image, "proxy-image", "registry.example.com/proxy:v1.0.0", "`image` of the proxy")
		},
		Hooks: func(context.Context, *program.Deps) ([]*webhook.Hook, error) {
			if image == "" {
				return nil, errors.New("--proxy-image is empty")
			}
			return inject.Hooks(image), nil
		},
	}
}
