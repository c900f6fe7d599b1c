// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// latest is the value of a label that applies to every version of a policy.
const latest = "latest"

// modeOf returns the mode of a request: by the labels of its Namespace, by the first rule that matches, or else the mode
// of h. It returns an error if it needs the labels of a Namespace and cannot read them.
func (h *Hook) modeOf(ctx context.Context, req *webhook.ModeRequest, namespaceLabels func(context.Context, string) (map[string]string, error)) (webhook.Mode, error) {
	var found labels.Set // of the Namespace, read when they are needed
	read := func() (labels.Set, error) {
		if found != nil || req.Namespace == "" {
			return found, nil
		}
		if isNamespace(req) { // a new one cannot be read yet, and the new labels of an update count
			found = labels.Set{}
			maps.Copy(found, req.Labels())
			return found, nil
		}
		own, err := namespaceLabels(ctx, req.Namespace)
		if err != nil {
			return nil, fmt.Errorf("cannot read the labels of namespace %s: %w", req.Namespace, err)
		}
		found = labels.Set{}
		maps.Copy(found, own)
		return found, nil
	}
	if h.NamespaceLabels != "" {
		own, err := read()
		if err != nil {
			return "", err
		}
		if mode := h.labelled(own); mode != "" {
			return mode, nil
		}
	}
	for i := range h.Rules {
		matches, err := h.Rules[i].matches(h.Webhook, req, read)
		if err != nil {
			return "", err
		}
		if matches {
			return h.Rules[i].Mode, nil
		}
	}
	return h.Mode, nil
}

// isNamespace reports whether a request creates or updates a Namespace.
func isNamespace(req *webhook.ModeRequest) bool {
	return req.Kind.Group == "" && req.Kind.Kind == "Namespace" && req.SubResource == "" &&
		(req.Operation == admissionv1.Create || req.Operation == admissionv1.Update)
}

// labelled returns the mode that the labels of a Namespace choose, or "" if none applies. If a value is neither a version
// nor latest, enforce applies to every version, as in PodSecurity, and the other labels are ignored: a mistake must not
// weaken the policy.
func (h *Hook) labelled(own labels.Set) webhook.Mode {
	for _, label := range []struct {
		name string
		mode webhook.Mode
	}{{"enforce", webhook.Enforce}, {"warn", webhook.Warn}, {"audit", webhook.Shadow}} {
		if value, ok := own[h.NamespaceLabels+"/"+label.name]; ok && (coversVersion(value, h.Version) || label.mode == webhook.Enforce && !isVersion(value)) {
			return label.mode
		}
	}
	return ""
}

// coversVersion reports whether the value of a label applies to a version.
func coversVersion(value, version string) bool {
	if value == latest {
		return true
	}
	most, err := parseVersion(value)
	own, invalid := parseVersion(version)
	return err == nil && invalid == nil && own <= most
}

func isVersion(value string) bool {
	_, err := parseVersion(value)
	return err == nil || value == latest
}

var errNoVersion = errors.New("must be a version such as v3")

// parseVersion returns the number in a version such as v3.
func parseVersion(text string) (int, error) {
	digits, ok := strings.CutPrefix(text, "v")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || strconv.Itoa(n) != digits {
		return 0, errNoVersion
	}
	return n, nil
}

// matches reports whether a request matches the rule.
func (r *Rule) matches(name string, req *webhook.ModeRequest, read func() (labels.Set, error)) (bool, error) {
	if len(r.Operations) > 0 && !slices.Contains(r.Operations, req.Operation) {
		return false, nil
	}
	if r.Percent != nil && bucket(name, r.keyOf(req)) >= uint32(*r.Percent) { //nolint:gosec // from 0 to 100
		return false, nil
	}
	if r.Namespaces == nil {
		return true, nil
	}
	own, err := read()
	return err == nil && req.Namespace != "" && r.selector.Matches(own), err
}

// keyOf returns the key that bucket hashes: the namespace, the owner, or the name of a cluster-scoped object.
func (r *Rule) keyOf(req *webhook.ModeRequest) string {
	if r.Of == Owners {
		if owner := req.Controller(); owner != nil {
			return req.Namespace + "/" + owner.Kind + "/" + owner.Name
		}
	}
	if req.Namespace == "" {
		return "/" + req.Name
	}
	return req.Namespace
}

// bucket returns a number from 0 to 99 that depends only on the webhook and the key. Because of the
// webhook, different policies begin with different namespaces.
func bucket(name, key string) uint32 {
	sum := sha256.Sum256([]byte(name + "\x00" + key))
	return binary.BigEndian.Uint32(sum[:4]) % 100
}
