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
// Apply needs no server of ours. Calls to webhooks that are new fail until every replica has
// them, and calls to one that was taken out of the code fail where it is gone already. Without
// Options.FailOpenFirst Apply takes the latter away, after it has stored the others: call it
// before the server starts, and it is gone before a replica without it takes calls. With
// FailOpenFirst both have Ignore while replicas are replaced. Once the Deployment is rolled out,
// [Installer.Promote] gives the new ones the failurePolicy of their registration, and then takes
// the old ones away. That holds for the last hook of a kind too; if the program may not patch its
// configuration any more, that keeps its policies until it goes.
//
// What the cluster has with Fail, at the same server, keeps it all the time, also when its rules change: an old
// replica may be asked about what it does not know then, and fails. Add a webhook of a new name
// for such rules, and it fails open first again. If nothing may pass unseen for the time of the
// rollout, have the program serve the one of the old name beside it for one release: it fails
// closed until the next, in which the new one does.
//
// [Installer.Run] does all of this beside a server and does not give up. [Installer.Status] tells
// how far it is.
//
// A validating hook may verify what a mutating one of the same program does. So mutating webhooks
// are stored first, and validating ones when the API server knows those and, in Run and Promote,
// has been seen to call them. They are removed in the other order.
//
// # Several replicas, several versions
//
// Every replica may install; they agree, because an apply of the same is no change, and who
// finds the webhooks promoted leaves them so. With Options.Deployment a replica that still waits
// when its Deployment goes on to another template stands back, and gives way when that is rolled
// out. Only a replica of the older version that happens to start during the rollout cannot tell:
// it applies the older configurations once, and the replicas of the newer put that right when
// the rollout is over. Where this moment matters, set Options.Revision.
//
// Nothing is removed when a replica ends; [Installer.Remove] is for the end of them all, and
// replicas that are waiting do not undo it.
//
// A configuration names the Service that it was installed for, or else the namespace. Another
// installation that has its name by mistake is refused, and so is a program that is called by
// URL in the namespace of one with a Service: it would take over all of its calls. See
// Options.Force.
//
// # Who owns the caBundle
//
// Without a CABundle in the options none is ever applied or taken away: a self-managed source
// of package certs, given [Installer.Targets], or cert-manager's injector owns that field, and
// either may come first. Then use FailOpenFirst: a new webhook is not promoted before it has the
// caBundle that the marker has.
//
// # Rights
//
// [RBAC] generates what the ServiceAccount of the webhook needs. The right to patch a
// configuration makes that account nearly a cluster administrator.
package install
