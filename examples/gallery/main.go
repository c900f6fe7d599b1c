// SPDX-License-Identifier: Apache-2.0

// Gallery runs reimplementations of Kubernetes' admission controllers, and other policies, as webhooks. The flag
// --enable selects them.
package main

import (
	"context"
	"flag"

	"github.com/admitkit/admitkit/pkg/celcheck"
	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func main() { newProgram().Main() }

func newProgram() program.Program {
	var s selection
	return program.Program{
		Name: "gallery",
		Flags: func(flags *flag.FlagSet) {
			flags.Func("enable", "comma-separated `names` of the admission controllers to run; repeat the flag for more: "+names(), s.enable)
			flags.Func("config", "configuration file of an admission controller, as `NAME=FILE`; repeat the flag for several controllers", s.configure)
		},
		Hooks: func(_ context.Context, deps *program.Deps) ([]*webhook.Hook, error) {
			hooks, err := s.hooks(deps)
			if err != nil {
				return nil, err
			}
			return hooks, celcheck.Check(hooks...)
		},
	}
}
