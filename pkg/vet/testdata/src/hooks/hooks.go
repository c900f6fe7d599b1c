// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/admitkit/admitkit/pkg/webhook"
)

type pod struct{ name string }

type validator struct{ get func(string) error }

func (v validator) validate(_ context.Context, req *webhook.Request[pod]) error {
	if err := v.get(req.Object.name); err != nil {
		return fmt.Errorf("read %s: %w", req.Object.name, err) // wraps a cause
	}
	if err := v.get("b"); err != nil {
		return errors.New("read b: " + err.Error()) // has a cause
	}
	switch req.Object.name {
	case "a":
		return fmt.Errorf("the name %s is taken", req.Object.name) // want `this error does not deny the request: .* return webhook.Denyf`
	case "b":
		return errors.New("no name") // want `to deny, return webhook.Deny;`
	case "c":
		return errors.Join(webhook.Deny("c"), errors.New("c")) // want `does not deny`
	case "d":
		return checkName(req.Object)
	case "e":
		return generic[pod](req.Object)
	case "h":
		if err := checkLength(req.Object); err != nil {
			return err
		}
		_, err := lookUp(req.Object)
		return err
	case "i":
		err := fmt.Errorf("i is %s", req.Object.name) // want `does not deny`
		return err
	case "j":
		err := v.get("j")
		return err // from another function
	case "f":
		return errors.New("the licence has expired") //admitkit:failure
	case "g":
		//admitkit:failure The limit is ours.
		return errors.New("too many calls")
	}
	return webhook.Denyf("no %s", req.Object.name)
}

func checkName(p *pod) error {
	if p.name == "x" {
		return fmt.Errorf("x is reserved") // want `does not deny`
	}
	return checkName(p) // a cycle ends
}

func checkLength(p *pod) error {
	return errors.New("too long") // want `does not deny`
}

func lookUp(p *pod) (int, error) {
	return 0, fmt.Errorf("no %s", p.name) // the value answers
}

func generic[T any](*T) error {
	return errors.New("generic") // want `does not deny`
}

var handler = func(_ context.Context, req *webhook.Request[pod]) error {
	inner := func() error { return errors.New("not returned to the API server") }
	_ = inner
	return errors.New("literal") // want `does not deny`
}

func notAHandler(p *pod) error { return errors.New("other code") }

func withoutError(req *webhook.Request[pod]) string { return fmt.Sprint(errors.New("a string")) }

// A scanner has a method that returns a value and an error. The analyzer treats the errors of such a method as
// failures.
type scanner struct{}

func (scanner) clean(context.Context, string) (bool, error) {
	return false, errors.New("the scanner answered 500")
}

func asksScanner(ctx context.Context, _ *webhook.Request[pod]) error {
	clean, err := scanner{}.clean(ctx, "image")
	if err != nil {
		return fmt.Errorf("scanning: %w", err)
	}
	if !clean {
		return webhook.Deny("not clean")
	}
	return nil
}
