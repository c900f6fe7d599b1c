// SPDX-License-Identifier: Apache-2.0

// Package certs provides the certificates that webhooks serve with, and keeps the API server
// trusting them.
//
// A [Source] provides a certificate: [Files] reads files, for example those of cert-manager. [Static] has a certificate in
// memory. [SelfManaged] creates its own, and needs only a Secret in the cluster. [TLSConfig] and [Ready] connect a source
// to a server:
//
//	source, err := certs.NewSelfManaged(certs.Options{ … })
//	server := webhook.NewServer(webhook.Options{
//		TLSConfig: certs.TLSConfig(source),
//		Ready:     certs.Ready(source),
//	}, hooks...)
//
// Start the source and the server, each in a goroutine, with an errgroup or a controller-runtime manager: both are
// Runnables. A source that has ended still serves its last certificate, so the order in which they stop does not
// matter.
//
// # How a CA is replaced
//
// The API server verifies a webhook's certificate with the caBundle of its configuration. It notices a change of the caBundle
// some time after the change is stored. So a self-managed source uses a CA only after the CA has been in every caBundle for
// a while, and removes a CA only when none of its certificates can be in use:
//
//	                 publish      sign                       retire
//	the old CA  ━━━━━━━━━━━━━━━━━━━━┿┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┤
//	the new CA          ├┄┄┄┄┄┄┄┄┄┄┄┿━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
//	                    │← Settle  →│← LeafLifetime and clocks →│
//	     ━ signs, and is in every caBundle   ┄ is in every caBundle
//
// All steps depend only on the Secret and the caBundles. Any replica can take the next step, and any replica can end at any
// moment.
package certs
