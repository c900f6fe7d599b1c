// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/admitkit/admitkit/internal/doctor"
	"github.com/admitkit/admitkit/internal/textutil"
)

// readRepairers finds out who may carry out a repair.
func (r *reader) readRepairers(ctx context.Context, repair *doctor.Repair) {
	if len(repair.Objects) == 0 { // conversion webhooks and aggregated API servers have no failurePolicy
		return
	}
	repair.You = r.mayPatch(ctx, repair.Objects)
	roles, ok := list[rbacv1.ClusterRole](ctx, r, resource("rbac.authorization.k8s.io", "v1", "clusterroles"), "", metav1.ListOptions{})
	if !ok {
		return
	}
	bindings, ok := list[rbacv1.ClusterRoleBinding](ctx, r, resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings"), "", metav1.ListOptions{})
	if ok {
		repair.Others = doctor.Repairers(repair.Objects, roles, bindings)
	}
}

// mayPatch reports whether the user may patch all objects.
func (r *reader) mayPatch(ctx context.Context, objects []string) string {
	for _, object := range objects {
		kind, name, _ := strings.Cut(object, "/")
		what := authorizationv1.ResourceAttributes{Verb: "patch", Group: "admissionregistration.k8s.io", Resource: strings.ToLower(kind) + "s", Name: name}
		if answer := r.may(ctx, what); answer != yes {
			return answer
		}
	}
	return yes
}

// These are the results of may, and the values of doctor.Repair.You.
const (
	yes     = "yes"
	no      = "no"
	unknown = "unknown"
)

// may asks the API server whether the user has a permission. A failing webhook can reject the SelfSubjectAccessReview:
// before Kubernetes 1.37, rules for all resources match it.
func (r *reader) may(ctx context.Context, what authorizationv1.ResourceAttributes) string {
	client, err := authorizationclient.NewForConfig(r.config)
	if err != nil {
		return unknown
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	review, err = client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return unknown
	case review.Status.Allowed:
		return yes
	}
	return no
}

// maxRepairers limits the users that the text lists; the JSON has all.
const maxRepairers = 8

func (t *printer) repair(r *doctor.Repair) {
	if r == nil {
		return
	}
	t.printf("%s\n", t.Bold("REPAIR, while the API server rejects requests"))
	for i, step := range r.Steps {
		t.hanging(fmt.Sprintf("  %d. ", i+1), step.Text)
		for _, command := range step.Commands {
			t.printf("     %s\n", textutil.VisibleLine(command)) // not wrapped, so that it can be pasted
		}
	}
	if len(r.Objects) > 0 {
		t.hanging("  Who: ", whoMay(r))
	}
	t.printf("\n")
}

func whoMay(r *doctor.Repair) string {
	text := map[string]string{
		yes: "you may do this.", no: "you may not do this.", unknown: "it is unknown whether you may do this.",
	}[r.You]
	if len(r.Others) > 0 {
		shown := r.Others[:min(len(r.Others), maxRepairers)]
		text += " By RBAC, these may: " + strings.Join(shown, ", ")
		if more := len(r.Others) - len(shown); more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		text += "."
	}
	return text + " A user of the group system:masters always may; kubeadm keeps one in /etc/kubernetes/super-admin.conf on a node of the control plane."
}
