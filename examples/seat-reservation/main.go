// SPDX-License-Identifier: Apache-2.0

// Seat-reservation is an admission webhook with a controller. Together they limit how many Pods use a licensed product
// at a time.
package main

import (
	"context"
	"flag"
	"time"

	"github.com/admitkit/admitkit/examples/seat-reservation/seats"
	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

func main() { newProgram().Main() }

func newProgram() program.Program {
	var o seats.Options
	return program.Program{
		Name: "seat-reservation",
		Flags: func(flags *flag.FlagSet) {
			flags.IntVar(&o.Seats, "seats", 10, "largest `number` of Pods that may have a seat at a time")
			flags.DurationVar(&o.Hold, "hold", 5*time.Minute, "how long a seat stays reserved for a Pod that is not stored yet; choose more than the --request-timeout of the API server")
		},
		Hooks: func(_ context.Context, deps *program.Deps) ([]*webhook.Hook, error) { return seats.New(deps, o) },
	}
}
