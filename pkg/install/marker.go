// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/unobserved"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A stored configuration takes effect after some time, at a different time on each API server, and always as a whole. An
// additional webhook in it, the marker, shows when that happens: it denies a Lease whose label has a value for this version
// of the configuration. Only the dry runs of this package send such a Lease.
const (
	markerLabel = "install.admitkit.dev/marker"
	// markerObject is the name of the Lease, which is never stored. The name is constant, so that RBAC can
	// name it. The object is a Lease because hardly any policy is about Leases.
	markerObject = "admitkit-marker"
	// noMarker is a label value that no marker denies.
	noMarker   = "none"
	markerText = "the configuration is enforced: this answers the program that installed it"
)

// A stage is the progress of an installation. A marker that confirms a stage also confirms all earlier ones. Otherwise
// a replica that waits for an earlier stage would wait forever.
type stage string

const (
	installed stage = "installed" // some version is enforced
	applied   stage = "applied"   // this version is enforced, perhaps with Ignore in place of Fail
	promoted  stage = "promoted"  // this version is enforced with its own failure policies
)

func markerName(configuration string) string {
	return "marker." + configuration + ".admitkit.dev"
}

// markerHooks returns a marker hook for each sort in s. The server's observers do not see calls to these hooks.
func markerHooks(o Options, s []sort) []*webhook.Hook {
	namespace := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: o.namespace()}}
	rule := webhook.OnCreate(leases.Group, leases.Version, leases.Resource)
	rule.Operations = append(rule.Operations, admissionregistrationv1.Update)
	rule.Scope = new(admissionregistrationv1.NamespacedScope)
	var hooks []*webhook.Hook
	for _, sort := range s {
		name, rules := markerName(o.Configuration.Name), webhook.Rules(rule)
		objects := &metav1.LabelSelector{MatchLabels: map[string]string{markerLabel: labelValue(sort, o.Configuration.Name, installed, "")}}
		if sort == mutating {
			hooks = append(hooks, webhook.Mutating(admissionregistrationv1.MutatingWebhook{
				Name: name, Rules: rules, NamespaceSelector: namespace, ObjectSelector: objects, MatchPolicy: new(admissionregistrationv1.Exact),
			}, denyMarker).WithObserver(unobservedByServer))
		} else {
			hooks = append(hooks, webhook.Validating(admissionregistrationv1.ValidatingWebhook{
				Name: name, Rules: rules, NamespaceSelector: namespace, ObjectSelector: objects, MatchPolicy: new(admissionregistrationv1.Exact),
			}, denyMarker).WithObserver(unobservedByServer))
		}
	}
	return hooks
}

// unobservedByServer keeps marker calls out of the server's metrics and traces.
var unobservedByServer = unobserved.Marker[webhook.Hook, webhook.Observation]{}

func denyMarker(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error {
	return webhook.Deny(markerText)
}

// labelValue returns the label value for a stage of a version. The stage installed ignores the version.
func labelValue(s sort, configuration string, at stage, version string) string {
	if at == installed {
		version = ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %s", s, configuration, at, version))
	return string(at) + "-" + hex.EncodeToString(sum[:10])
}

// markerSelector returns a label selector for marker requests with these label values.
func markerSelector(values []any) map[string]any {
	return map[string]any{"matchExpressions": []any{map[string]any{
		"key": markerLabel, "operator": string(metav1.LabelSelectorOpIn), "values": values,
	}}}
}

// A markerResult is what an answer to a marker request means.
type markerResult int

const (
	unclear    markerResult = iota // something else denied the request
	absent                         // no such configuration is enforced
	unanswered                     // enforced, but calls to the webhook fail
	enforced                       // enforced, and calls are answered
)

// fullQuota matches a denial of the API server's quota plugin. The denials of webhooks and policies begin with other
// words.
var fullQuota = regexp.MustCompile(`^` + leases.Resource + `\.` + regexp.QuoteMeta(leases.Group) + ` "` + markerObject + `" is forbidden: exceeded quota: [^ ]+, requested: .*, used: .*, limited: `)

// errStripped says that another webhook removed the label before the marker saw the request.
var errStripped = fmt.Errorf("a mutating webhook or policy removes the label %s from Leases: exclude Lease %s from it", markerLabel, markerObject)

// resultOf interprets the API server's answer to a marker request. A nil err means that nothing denied the request.
func resultOf(marker string, err error) markerResult {
	switch {
	case err == nil:
		return absent
	case !isStatus(err):
		return unclear
	case strings.HasPrefix(err.Error(), fmt.Sprintf("admission webhook %q denied the request: %s", marker, markerText)):
		return enforced
	case strings.Contains(err.Error(), fmt.Sprintf("failed calling webhook %q", marker)):
		return unanswered
	case apierrors.IsForbidden(err) && fullQuota.MatchString(err.Error()):
		return absent // the quota plugin runs after all webhooks
	default:
		return unclear
	}
}

func isStatus(err error) bool {
	return apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
}
