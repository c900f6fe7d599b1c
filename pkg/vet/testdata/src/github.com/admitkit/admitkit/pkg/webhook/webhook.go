// SPDX-License-Identifier: Apache-2.0

// Package webhook stands in for the real package. It has only the declarations that the analyzer looks for.
package webhook

type Request[T any] struct{ Object *T }

func Deny(reason string) error { return nil }

func Denyf(format string, args ...any) error { return nil }
