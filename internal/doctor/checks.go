// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"github.com/admitkit/admitkit/pkg/lint"
)

// A Check describes one kind of problem.
type Check struct {
	// ID is stable. The checks that begin with AK are rules of pkg/lint.
	ID       string
	Severity lint.Severity
	Title    string
	Fix      string
	// unreachable is true if a finding of the check means that calls of the API server fail.
	unreachable bool
}

// Checks returns all checks. Findings of the same severity are in this order.
func Checks() []Check { return slices.Clone(checks) }

var checks = slices.Concat(unreachable, fromLint(isBundleRule), fromLint(isOtherRule), dangerous, failing)

// unreachable lists the checks for webhooks that the API server cannot call.
var unreachable = []Check{
	{"namespace-missing", lint.Error, "the namespace of the Service does not exist",
		"Install the webhook's program again, or delete what registers it.", true},
	{"namespace-terminating", lint.Error, "the namespace of the Service is being deleted",
		"If the deletion is intended, delete what registers the webhook. Otherwise, install it again after the namespace is gone.", true},
	{"service-missing", lint.Error, "the Service does not exist",
		"Create the Service, name the right one, or delete what registers the webhook.", true},
	{"service-headless", lint.Error, "the Service has no cluster IP",
		"Give the Service a cluster IP: delete it, and create it without clusterIP: None. An API server with --enable-aggregator-routing can call headless Services.", true},
	{"service-port", lint.Error, "the Service has no such port",
		"Use a port of the Service, not of its Pods; the default is 443.", true},
	{"target-port", lint.Error, "the targetPort of the Service is not a port of the Pods",
		"Correct targetPort in the Service, or the name of the port in the Pods.", true},
	{"no-endpoints", lint.Error, "no Pod is behind the Service",
		"Start the Pods of the webhook, or correct the selector of the Service.", true},
	{"endpoints-not-ready", lint.Error, "no Pod behind the Service is ready",
		"Find out why the Pods are not ready.", true},
	{"host-unknown", lint.Error, "the host of the URL has no address",
		"Correct the host, or use a Service.", true},
	{"connection-refused", lint.Error, "nothing listens where the API server calls",
		"Let the program listen on the targetPort of the Service, or correct the port.", true},
	{"connection-timeout", lint.Error, "nothing answers where the API server calls",
		"Find out whether the program hangs, or a firewall drops its packets.", true},
	{"blocked", lint.Error, "the API server does not reach the Pods",
		"Open the port of the Pods to the API server: in a NetworkPolicy, or in the firewall between the control plane and the nodes.", true},
	{"not-tls", lint.Error, "the server does not speak TLS",
		"Serve HTTPS at this port. The API server calls no webhook without TLS.", true},
	{"handshake-failed", lint.Error, "the TLS handshake fails",
		"Find the cause in the log of the program. It may have no certificate yet.", true},
	{"certificate-expired", lint.Error, "the serving certificate has expired",
		"Renew the certificate, and let the program load it. Find out why it was not renewed.", true},
	{"certificate-not-yet-valid", lint.Error, "the serving certificate is not valid yet",
		"Correct the clocks of the machines, or issue a new certificate.", true},
	{"certificate-name", lint.Error, "the serving certificate is for another name",
		"Issue a certificate with the name that the API server calls.", true},
	{"certificate-untrusted", lint.Error, "the caBundle does not trust the serving certificate",
		"Set caBundle to the CA of the certificate. Find out which program writes the caBundle, and which one issues the certificate.", true},
	{"wrong-path", lint.Error, "the server does not know the path",
		"Correct the path of the webhook, or install the version of the program that serves it.", true},
	{"call-fails", lint.Error, "the API server's call fails",
		"The message says why. In Troubleshooting of admitkit, each message has a fix.", true},
	{"unavailable", lint.Error, "the API server does not use the aggregated API server",
		"Find the cause in the condition and in the log of the program.", true},
	{"network-policy", lint.Warning, "a NetworkPolicy may keep the API server from the Pods",
		"Open the port of the Pods in a NetworkPolicy, without a selector: the API server is often not a Pod.", false},
	{"certificate-expires-soon", lint.Warning, "the serving certificate expires soon",
		"Find out why it is not renewed.", false},
}

// lintRules are the rules of pkg/lint that doctor applies. A severity overrides that of the rule.
var lintRules = map[string]lint.Severity{
	// the caBundle
	"AK502": "", "AK503": "", "AK504": "", "AK506": "", "AK507": "",
	// lock-outs
	"AK201": "", "AK202": "", "AK203": "", "AK204": "", "AK205": "", "AK206": "", "AK207": "", "AK208": "",
	// In a running cluster, the next drain of a node stops the only replica.
	"AK210": lint.Warning,
	// the timeouts of webhooks add up
	"AK403": "",
}

// dangerous lists further checks for webhooks that fail when something else fails.
var dangerous = []Check{
	{"undo-each-other", lint.Error, "webhooks undo each other's changes",
		"Let only one webhook write the field. The other one must keep a value that it did not set.", false},
	{"one-ready", lint.Warning, "only one Pod of the webhook is ready",
		"Find out why the other Pods are not ready.", false},
	{"no-disruption-budget", lint.Warning, "no PodDisruptionBudget protects the webhook",
		"Create a PodDisruptionBudget with maxUnavailable: 1 for the Pods.", false},
	{"weak-disruption-budget", lint.Warning, "the PodDisruptionBudget lets all Pods be evicted at once",
		"Set maxUnavailable: 1 in the PodDisruptionBudget.", false},
	{"one-node", lint.Warning, "all Pods of the webhook run on one node",
		"Spread the Pods with topologySpreadConstraints on kubernetes.io/hostname, and restart them.", false},
	{"not-verified", lint.Advice, "the certificate of an aggregated API server is not verified",
		"Set caBundle, and remove insecureSkipTLSVerify.", false},
}

// failing lists the checks of the API server's metrics, for webhooks that fail or are slow.
var failing = []Check{
	{"fails-closed", lint.Error, "calls fail, and the API server rejects the requests",
		"Find the cause in the message that users get, in the API server's log, or with --probe. Run at least two replicas.", false},
	{"fails-open", lint.Warning, "calls fail and are ignored, so that the webhook decides nothing",
		"Find the cause in the API server's log. Check the availability, the timeout and the certificate of the webhook.", false},
	{"condition-errors", lint.Warning, "matchConditions have errors",
		"Let each condition test whether a field is there: has(object.metadata.labels). An error rejects the request if failurePolicy is Fail.", false},
	{"slow", lint.Warning, "requests wait long for the webhook",
		"Narrow the rules, add matchConditions, give the replicas more CPU, and set a short timeoutSeconds.", false},
}

// fromLint returns the selected rules of pkg/lint as checks.
func fromLint(selected func(rule string) bool) []Check {
	var all []Check
	for _, r := range lint.Rules() {
		if !selected(r.ID) {
			continue
		}
		severity := lintRules[r.ID]
		if severity == "" {
			severity = r.Severity
		}
		// The API server does not use a private key in a caBundle, so AK507 makes no call fail.
		all = append(all, Check{ID: r.ID, Severity: severity, Title: r.Title, Fix: r.Fix, unreachable: isBundleRule(r.ID) && r.ID != "AK507"})
	}
	return all
}

// checkOf returns the check with this ID. It panics if there is none.
func checkOf(id string) Check {
	at := slices.IndexFunc(checks, func(c Check) bool { return c.ID == id })
	if at < 0 {
		panic(fmt.Sprintf("there is no check %q", id)) // a test runs every check
	}
	return checks[at]
}
