// SPDX-License-Identifier: Apache-2.0

// Package install registers hooks with a cluster from code, and can tell when the API server
// enforces them: not that the configurations exist, but that calls arrive.
//
// An [Installer] applies the configurations of hooks by server-side apply, so it changes nothing
// that others set in them. Each configuration gets one more webhook, the marker, which denies
// what nobody else makes: a Lease in the webhook's own namespace with a label that stands for
// this version of the configuration. [Installer.Wait] asks with dry runs of such a Lease. Denied
// by the marker means that the API server has this version, can reach the webhook, and trusts
// its certificate; a failed call tells what is wrong; and created, that it does not know of the
// version yet. Serve [Installer.Hooks], in which the markers are.
//
// # The order of things
//
// Apply needs no server of ours. Call it before the server starts: then a webhook that was
// taken out of the code is gone from the cluster before a replica without it takes calls. Calls
// to webhooks that are new fail until every replica has them; Options.FailOpenFirst registers
// those with Ignore, and [Installer.Promote] gives them the failurePolicy of their registration
// once the Deployment is rolled out. What the cluster has with Fail keeps it all the time, also
// when its rules change: an old replica may be asked about what it does not know then. Give
// such a webhook a new name, and it fails open first again.
//
// [Installer.Run] does all of this beside a server and does not give up.
//
// # Several replicas, several versions
//
// Every replica may install; they agree, because an apply of the same is no change, and who
// finds the webhooks promoted leaves them so. While a rollout replaces a version by another, a
// replica of the older one that happens to start applies the older configurations once. The
// replicas of the newer put that right when the rollout is over, if they wait for it with
// Options.Deployment. Where this moment matters, set Options.Revision: then the older one stands
// back. Nothing is removed when a replica ends; [Installer.Remove] is for the end of them all.
//
// # Who owns the caBundle
//
// Without a CABundle in the options none is ever applied or taken away: a self-managed source
// of package certs, given [Installer.Targets], or cert-manager's injector owns that field, and
// either may come first. Then use FailOpenFirst: a new webhook is not promoted before it has its
// caBundle.
//
// # Rights
//
// [RBAC] generates what the ServiceAccount of the webhook needs.
package install
