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

// A configuration takes effect some time after it is stored, at each API server on its own,
// and as a whole. So one more webhook in it tells when: the marker denies what has a label with
// a value of this very version, which nothing has but the dry runs that ask.
const (
	markerLabel = "install.admitkit.dev/marker"
	// markerObject is the name of the Lease that is never stored. It is always the same, so
	// that RBAC can name it; and a Lease, because next to no policy is about those.
	markerObject = "admitkit-marker"
	// noMarker is a value of the label that no marker denies.
	noMarker   = "none"
	markerText = "the configuration is enforced: this answers the program that installed it"
)

// A sort is one of the two kinds of configurations.
type sort string

const (
	mutating   sort = "mutating"
	validating sort = "validating"
)

var sorts = []sort{mutating, validating}

// A stage is how far an installation is. A configuration at one stage is at those before, too,
// so that who waits for a stage is not left behind by a replica that has gone on.
type stage string

const (
	installed stage = "installed" // some version is enforced
	applied   stage = "applied"   // this version is, perhaps with Ignore for Fail
	promoted  stage = "promoted"  // this version is, as it was written
)

func markerName(configuration string) string {
	return "marker." + configuration + ".admitkit.dev"
}

// markerHooks returns a hook for each kind that the hooks are of. Their denials are no denials
// to whoever counts those.
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

// unobservedByServer keeps marker calls out of the metrics and traces of the server.
var unobservedByServer = unobserved.Marker[webhook.Hook, webhook.Observation]{}

func denyMarker(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error {
	return webhook.Deny(markerText)
}

// labelValue returns what stands for a stage of a version. The version does not matter to
// installed.
func labelValue(s sort, configuration string, at stage, version string) string {
	if at == installed {
		version = ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %s", s, configuration, at, version))
	return string(at) + "-" + hex.EncodeToString(sum[:10])
}

// markerSelector selects the questions about these stages.
func markerSelector(values []any) map[string]any {
	return map[string]any{"matchExpressions": []any{map[string]any{
		"key": markerLabel, "operator": string(metav1.LabelSelectorOpIn), "values": values,
	}}}
}

// A sight is what the answer to a marker request shows.
type sight int

const (
	unclear    sight = iota // something else refused the request
	absent                  // no such configuration is enforced
	unanswered              // it is enforced, but calls to the webhook fail
	enforced                // it is, and calls are answered
)

// fullQuota is what the quota plugin of the API server says, and neither a webhook nor a policy
// can: their denials begin with other words.
var fullQuota = regexp.MustCompile(`^` + leases.Resource + `\.` + regexp.QuoteMeta(leases.Group) + ` "` + markerObject + `" is forbidden: exceeded quota: [^ ]+, requested: .*, used: .*, limited: `)

// errStripped is the answer to a question that was none any more when the marker was to see it.
var errStripped = fmt.Errorf("a mutating webhook or policy takes the label %s away from Leases: have it leave Lease %s alone", markerLabel, markerObject)

// look judges the answer of the API server.
func look(marker string, err error) sight {
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
		return absent // quotas come after all webhooks
	default:
		return unclear
	}
}

func isStatus(err error) bool {
	return apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
}
