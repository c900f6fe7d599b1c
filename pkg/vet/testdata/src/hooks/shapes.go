// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/admitkit/admitkit/pkg/webhook"
)

type podRequest = webhook.Request[pod]

func alias(req *podRequest) error {
	return errors.New("by an alias") // want `does not deny`
}

func named(req *webhook.Request[pod]) (_ int, err error) {
	err = errors.New("a named result") // want `does not deny`
	return
}

func declared(req *webhook.Request[pod]) error {
	var err error = errors.New("a declaration") // want `does not deny`
	return err
}

var errNoOwner = errors.New("no owner") // want `does not deny`

var errClosed = errors.New("closed") // returned by no handler

func ofThePackage(req *webhook.Request[pod]) error {
	if req.Object.name == "a" {
		return errNoOwner
	}
	return errNoOwner
}

func wrapping(_ context.Context, req *webhook.Request[pod]) error {
	if err := checkWrapped(req.Object); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	return fmt.Errorf("check: %w", checkDirectly(req.Object))
}

func checkWrapped(*pod) error {
	return errors.New("wrapped") // want `does not deny`
}

func checkDirectly(*pod) error {
	return errors.New("wrapped") // want `does not deny`
}

func shadowed(req *webhook.Request[pod]) error {
	webhook := "a variable"
	return errors.New(webhook) // want `does not deny`
}
