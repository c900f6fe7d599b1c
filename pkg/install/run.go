// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"time"
)

const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// patience is how long Run waits for the API server before it applies again: somebody may
	// have taken the configurations away.
	patience = time.Minute
)

// Run does all of [Installer.Apply], [Installer.Wait] and [Installer.Promote], each error
// logged and tried again, and returns nil when that is done, when ctx is, or when a newer
// revision is in the cluster. It removes nothing at its end, because other replicas live on, and
// does not watch what becomes of the configurations later.
//
// It fits an errgroup beside Server.Start, and as manager.RunnableFunc(installer.Run) a
// controller-runtime manager, where the leader runs it.
func (i *Installer) Run(ctx context.Context) error {
	delay := firstRetry
	for {
		err := i.once(ctx)
		switch {
		case err == nil:
			i.logger.Info("the webhooks are installed and enforced")
			return nil
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrSuperseded):
			i.logger.Info("a newer revision is installed: nothing to do", "reason", err.Error())
			return nil
		}
		i.logger.Error(err, "cannot install the webhooks yet", "retryIn", delay)
		if !sleep(ctx, delay) {
			return nil
		}
		delay = min(2*delay, lastRetry)
	}
}

func (i *Installer) once(ctx context.Context) error {
	if err := i.Apply(ctx); err != nil {
		return err
	}
	if err := i.awaitFor(ctx, patience, applied); err != nil {
		return err
	}
	return i.promote(ctx, patience)
}
