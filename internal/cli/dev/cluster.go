// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"

	"github.com/admitkit/admitkit/internal/cli/problem"
)

type joined struct{ context string }

func joinCluster(context.Context, *session) (place, error) { return nil, problem.New("not there yet") }

func (j *joined) done() <-chan struct{} { return nil }
func (j *joined) err() error            { return nil }
func (j *joined) close() error          { return nil }
