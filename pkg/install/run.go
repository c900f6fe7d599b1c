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
	// patience bounds how long Run waits for the API server before it applies again, because a replica of another
	// version may have applied its own configuration.
	patience = time.Minute
)

// Run calls [Installer.Apply], [Installer.Wait] and [Installer.Promote], and logs and retries every error. It returns
// nil when the webhooks are installed and enforced, when ctx ends, when a newer program installs ([ErrSuperseded]), or
// when its configuration was removed ([ErrRemoved]). It removes nothing, because other replicas keep running. It does
// not watch the configurations afterwards: see [Installer.Watch].
//
// Call Run in an errgroup beside Server.Start, or add it to a controller-runtime manager as a manager.RunnableFunc,
// which only the leader runs.
func (i *Installer) Run(ctx context.Context) error {
	if i.o.Deployment != "" && i.o.Revision == 0 {
		i.logger.Info("Revision is not set: a replica of an older version that starts during a rollout installs its hooks until the rollout is over")
	}
	delay, p := firstRetry, i.promoter()
	for {
		err := p.once(ctx)
		if ctx.Err() == nil {
			_ = i.status.ended(err)
		}
		switch {
		case err == nil:
			i.logger.Info("the webhooks are installed and enforced")
			return nil
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrSuperseded):
			i.logger.Info("a newer version of the program installs the webhooks, so this one does not", "reason", err.Error())
			return nil
		case errors.Is(err, ErrRemoved):
			// An error would end the program, and its next start would install again.
			i.logger.Error(err, "the webhooks were uninstalled, so they are installed again only when the program restarts")
			return nil
		}
		i.logger.Error(err, "cannot install the webhooks yet", "retryIn", delay.String(), "phase", i.Status().Phase)
		if !sleep(ctx, delay) {
			return nil
		}
		delay = min(2*delay, lastRetry)
	}
}

func (p *promoter) once(ctx context.Context) error {
	if err := p.rollout.standBack(ctx); err != nil {
		return err
	}
	if err := p.apply(ctx); err != nil {
		return err
	}
	if err := p.checker.awaitFor(ctx, patience, applied); err != nil {
		return err
	}
	return p.promote(ctx, patience)
}
