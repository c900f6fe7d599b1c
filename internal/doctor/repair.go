// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/admitkit/admitkit/internal/textutil"
)

// A Repair has the steps that make the cluster usable again while the API server rejects requests.
type Repair struct {
	Steps []Step `json:"steps"`
	// Objects are the webhook configurations that the steps change.
	Objects []string `json:"objects,omitempty"`
	// You is "yes", "no" or "unknown": whether the user of the kubeconfig may change these objects.
	You string `json:"you,omitempty"`
	// Others are the users and groups that RBAC permits to change them. It is nil if RBAC could not be read.
	Others []string `json:"others,omitempty"`
}

// A Step has commands that must be run in order.
type Step struct {
	Text     string   `json:"text"`
	Commands []string `json:"commands"`
}

// registration is the API group of webhook configurations.
const registration = "admissionregistration.k8s.io"

// RepairOf returns the repair of the findings that make the API server reject requests, or nil if there are none. The API
// server never calls webhooks for webhook configurations, so the commands always work.
func RepairOf(s *Snapshot, found []Finding) *Repair {
	var rejecting []*Target
	var causes, commands []string
	for _, f := range found {
		if !f.Rejects {
			continue
		}
		causes = append(causes, f.Check+" of "+f.Subject)
		commands = appendNew(commands, f.Commands...)
		for _, t := range s.Targets {
			if t.Fails && slices.Contains(f.Callers, t.caller()) {
				rejecting = appendNew(rejecting, t)
			}
		}
	}
	if len(rejecting) == 0 {
		return nil
	}
	var r Repair
	var save, ignore, restore []string
	for _, t := range rejecting {
		if t.Kind != Mutating && t.Kind != Validating || slices.Contains(r.Objects, t.Object()) {
			continue
		}
		r.Objects = append(r.Objects, t.Object())
		name := strings.ToLower(t.Kind) + " " + t.Name
		save = append(save, fmt.Sprintf("kubectl get %s -o yaml > %s.%s.yaml", name, t.Name, strings.ToLower(t.Kind)))
		ignore = append(ignore, patch(name, t, rejecting, "Ignore"))
		restore = append(restore, patch(name, t, rejecting, "Fail"))
	}
	if len(r.Objects) > 0 {
		r.Steps = []Step{
			{"Keep a copy.", save},
			{"Let the API server ignore the failures of these webhooks. Until step 4 they decide nothing.", ignore},
		}
	}
	r.Steps = append(r.Steps, Step{"Repair the cause: " + textutil.Join(causes, "and") + ".", append([]string{}, commands...)})
	if len(r.Objects) > 0 {
		r.Steps[2].Text += " If a program writes failurePolicy back, delete the configuration instead."
		r.Steps = append(r.Steps, Step{"Enforce the webhooks again.", restore})
	}
	r.Steps = append(r.Steps, Step{"Check the result.", []string{"admitkit doctor"}})
	return &r
}

// patch returns a command that sets the failurePolicy of the rejecting webhooks of a configuration. The command fails if
// the configuration has changed.
func patch(name string, of *Target, rejecting []*Target, policy string) string {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	var operations []operation
	for _, t := range rejecting {
		if t.Object() == of.Object() {
			at := fmt.Sprintf("/webhooks/%d/", t.Index)
			operations = append(operations, operation{"test", at + "name", t.Webhook}, operation{"replace", at + "failurePolicy", policy})
		}
	}
	text, err := json.Marshal(operations)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return "kubectl patch " + name + " --type=json -p " + textutil.ShellQuote(string(text))
}

// Repairers returns the users, groups and service accounts that may patch all of the objects. Service accounts of
// controllers in kube-system are left out.
func Repairers(objects []string, roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) []string {
	able := map[string]bool{}
	for _, role := range roles {
		able[role.Name] = !slices.ContainsFunc(objects, func(object string) bool {
			kind, name, _ := strings.Cut(object, "/")
			return !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return allows(r, strings.ToLower(kind)+"s", name) })
		})
	}
	all := []string{}
	for _, b := range bindings {
		if b.RoleRef.Kind != "ClusterRole" || !able[b.RoleRef.Name] {
			continue
		}
		for _, s := range b.Subjects {
			switch {
			case s.Kind == rbacv1.GroupKind && s.Name == "system:masters": // it may do everything, also without RBAC
			case s.Kind != rbacv1.ServiceAccountKind:
				all = appendNew(all, s.Kind+" "+s.Name)
			case s.Namespace != "kube-system":
				all = appendNew(all, s.Kind+" "+s.Namespace+"/"+s.Name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// allows reports whether a rule permits to patch a webhook configuration.
func allows(r rbacv1.PolicyRule, resource, name string) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return has(r.Verbs, "patch") && has(r.APIGroups, registration) && has(r.Resources, resource) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
}
