// SPDX-License-Identifier: Apache-2.0

// Package certs provides the certificates that webhooks serve with, and keeps the API server
// trusting them.
//
// A [Source] provides a certificate: [Files] reads files, for example those of cert-manager. [Static] has a certificate in
// memory. [SelfManaged] creates its own, and needs only a Secret in the cluster. [TLSConfig] and [Ready] are the two things that a server
// wants of a source:
//
//	source, err := certs.NewSelfManaged(certs.Options{ … })
//	server := webhook.NewServer(webhook.Options{
//		TLSConfig: certs.TLSConfig(source),
//		Ready:     certs.Ready(source),
//	}, hooks...)
//
// Start both, each in a goroutine: an errgroup does it, or a controller-runtime manager, of
// which both are Runnables. A source that has ended goes on serving its last certificate, so
// the order in which they stop does not matter.
//
// # How a CA is replaced
//
// The API server trusts a webhook by the caBundle of its configuration, and learns of a change
// there some time after it is stored. So a self-managed source never serves what was not
// trusted for a while, and never takes the trust from what may be served:
//
//	                 publish      sign                       retire
//	the old CA  ━━━━━━━━━━━━━━━━━━━━┿┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┤
//	the new CA          ├┄┄┄┄┄┄┄┄┄┄┄┿━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
//	                    │← Settle  →│← LeafLifetime and clocks →│
//	     ━ signs, and is in every caBundle   ┄ is in every caBundle
//
// All of it is decided by what is in the Secret and in the caBundles, which any replica may
// read and move on: none is special, and each may die at any moment.
package certs
