// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrSuperseded means that another version of the program installs its webhooks instead: the stored configuration has a
// higher Options.Revision, or the Deployment was rolled out with another Pod template. Nothing needs to be done. The
// methods of an Installer return errors that wrap it.
var ErrSuperseded = errors.New("superseded by a newer revision")

// ErrRemoved means that the configurations were removed while the program was installing them, for example by
// [Installer.Remove]. Call [Installer.Apply] to install them again. The methods of an Installer return errors that wrap
// it.
var ErrRemoved = errors.New("removed in the meantime")

// explain adds advice to an error of the API server. The parameter what describes the failed request, as in "cannot
// read Namespace hooks".
func explain(what string, err error) error {
	switch conflicts := fieldConflicts(err); {
	case err == nil:
		return nil
	case len(conflicts) > 0:
		return fmt.Errorf("%s: other field managers own some of its fields: %s; remove the fields from their manifests, or set Force: %w", what, strings.Join(conflicts, ", "), err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w (%w)", what, errChanged, err)
	case missingRight(err) != "":
		return fmt.Errorf("%s: not allowed: grant %s to the account of the webhook, as RBAC does: %w", what, missingRight(err), err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// fieldConflicts lists the conflicting fields and their managers.
func fieldConflicts(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var list []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			// The message is: conflict with "helm" using admissionregistration.k8s.io/v1
			list = append(list, fmt.Sprintf("%s (%s)", cause.Field, cause.Message))
		}
	}
	slices.Sort(list)
	return list
}

// authorizer matches the API server's message about a missing permission: User "x" cannot patch resource "configmaps" in
// API group "" in the namespace "hooks".
var authorizer = regexp.MustCompile(`cannot ([a-z]+) resource "([^"]+)"`)

// missingRight returns the verb and resource that the authorizer refused, or "".
func missingRight(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	found := authorizer.FindStringSubmatch(err.Error())
	if found == nil { // an admission plugin denied it
		return ""
	}
	return fmt.Sprintf("the verb %s on %s", found[1], found[2])
}

// hopeless returns an error if repeating the marker request cannot change its answer.
func hopeless(namespace string, err error) error {
	if missingRight(err) != "" || apierrors.IsUnauthorized(err) {
		return explain(fmt.Sprintf("cannot check what is enforced, by a dry run of Lease %s/%s", namespace, markerObject), err)
	}
	if problem := namespaceProblem(namespace, err); problem != nil {
		return fmt.Errorf("cannot check what is enforced: %w", problem)
	}
	return nil
}

// namespaceProblem returns an error if err says that the namespace does not exist or is being deleted.
func namespaceProblem(namespace string, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces":
		return fmt.Errorf("create namespace %s, in which the webhook runs: %w", namespace, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("namespace %s is being deleted: %w", namespace, err)
	}
	return nil
}

var errChanged = errors.New("changed by another client in the meantime")
