// SPDX-License-Identifier: Apache-2.0

// Package install registers hooks with a cluster from code: it stores their webhook configurations. It also reports
// when the API server enforces them, which is some time after they are stored.
//
// An [Installer] applies the configurations of hooks by server-side apply, so it changes no field that another field
// manager owns. It adds one more webhook, the marker, to each configuration. In the webhook's own namespace, the marker
// denies a Lease that has a label for this version of the configuration. No other client creates such a Lease.
// [Installer.Wait] sends dry runs of such a Lease, the marker requests:
//
//   - if the marker denies it, the API server has this version, can reach the webhook, and trusts its certificate;
//   - if the API server cannot call the webhook, the error says what is wrong;
//   - if nothing denies it, the API server does not know this version yet.
//
// The server must serve [Installer.Hooks], which include the marker hooks.
//
// # Order
//
// Apply needs no running server. During a rollout, calls to a new webhook fail until every replica serves it, and calls
// to a webhook that was dropped from the code fail on replicas that no longer serve it. Without Options.FailOpenFirst,
// Apply removes dropped webhooks after it has stored the current ones. So call Apply before the server starts: then the
// dropped webhooks are gone before a replica without them takes calls. With FailOpenFirst, new and dropped webhooks
// have the failurePolicy Ignore while replicas are replaced. After the rollout [Installer.Promote] gives the new ones
// the failurePolicy of their registration and then removes the dropped ones. If the program has no mutating hooks left,
// the webhooks of its MutatingWebhookConfiguration are dropped in the same way, and so it is with validating hooks. If
// RBAC does not permit the program to patch that configuration, its webhooks keep their failurePolicy until they are
// removed.
//
// If the cluster already has a webhook with Fail at the same server, the webhook keeps Fail, even if its rules change.
// An old replica may then get a request that it cannot handle, and the call fails. Give such rules to a webhook with a
// new name, which fails open first. If every request must be reviewed during the rollout, let the program also serve
// the webhook with the old name for one more release. Then the old webhook fails closed until the new one does.
//
// [Installer.Run] does all of this while the server runs, and retries after errors. [Installer.Status] returns its
// progress.
//
// A validating hook may verify what a mutating hook of the same program does. So mutating webhooks are stored first.
// Validating webhooks follow when the API server knows the mutating ones and, in Run and Promote, has called
// them. They are removed in the reverse order.
//
// # Several replicas and versions
//
// Every replica may install. Replicas of one version agree: applying the same configuration changes nothing, and a
// replica that finds the webhooks promoted does not demote them. With Options.Deployment, a waiting replica pauses when
// its Deployment moves on to another Pod template, and gives up when that template is rolled out. A replica of the
// older version that starts during the rollout cannot notice the change. It applies the older configurations once, and
// the newer replicas correct them at the end of the rollout. Set Options.Revision to prevent this.
//
// A replica removes nothing when it ends. [Installer.Remove] is for uninstalling, and waiting replicas do not undo it.
//
// A configuration records the Service that it was installed for, or the namespace and the URL. The installer rejects
// another installation with the same name, because one of the two would take over all calls. A program with a URL and a
// program with a Service are two installations, even in one namespace. See Options.Force.
//
// # The caBundle
//
// Without a CABundle in the options, the installer neither applies nor removes one. Then cert-manager's injector owns
// that field, or a self-managed certificate source of package certs to which you pass [Installer.Targets]. The
// installer and the owner may start in any order. Use FailOpenFirst then: a new webhook is not promoted before it has
// the marker's caBundle.
//
// # Permissions
//
// [RBAC] generates the permissions that the webhook's ServiceAccount needs. The permission to patch a webhook
// configuration makes that account nearly a cluster administrator.
package install
