// SPDX-License-Identifier: Apache-2.0

// Package certs provides the certificates that webhooks serve with, and keeps the API server
// trusting them.
package certs
