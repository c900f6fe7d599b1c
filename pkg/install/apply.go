// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
)

// Apply stores the configurations by server-side apply with the field manager "admitkit-install". It keeps what other
// managers set in them. It then removes webhooks that it applied earlier and that are no longer among the hooks.
// Without FailOpenFirst every webhook has the failurePolicy of its registration; with it, see that option.
//
// Apply needs no running server and waits for none. It returns as soon as the API server has stored the
// configurations; [Installer.Wait] waits until they are enforced. Between the mutating and the validating webhooks it
// gives the API server a moment to notice the mutating ones. An error names the object and what to do.
func (i *Installer) Apply(ctx context.Context) error {
	return i.status.ended(i.applier(false).apply(ctx))
}

func (a *applier) apply(ctx context.Context) error {
	a.status.begins()
	if err := a.checkNamespace(ctx); err != nil {
		return err
	}
	p := clearing
	if a.o.FailOpenFirst {
		p = opening
	}
	if err := a.applyAll(ctx, p); err != nil {
		return err
	}
	a.status.stored(a.failsOpen)
	return nil
}

// checkNamespace returns an error if the webhook's namespace does not exist or is being deleted. No server could answer
// there, so the configurations would block requests. If the check itself fails, checkNamespace returns nil.
func (a *applier) checkNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if problem := namespaceProblem(a.o.namespace(), a.cluster.ask(ctx, noMarker)); problem != nil {
		return fmt.Errorf("nothing is installed: %w", problem)
	}
	return nil
}

// Wait returns when the API server enforces the configurations as [Installer.Apply] or [Installer.Promote] stored
// them: it has read this version, and its calls arrive at a server that has these hooks and a certificate that the
// API server trusts. Wait asks with dry-run requests, which are never stored.
//
// If ctx ends first, the error has the API server's last answer, such as why it cannot call the webhook. Wait fails at
// once if its requests are not permitted, or if the namespace does not exist, because waiting would not help.
func (i *Installer) Wait(ctx context.Context) error {
	enforcement := checker{&i.installation}
	return enforcement.await(ctx, enforcement.there(applied))
}
