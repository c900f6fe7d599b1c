// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"
)

// prepareForNode prepares a dry run of the request, so that the stored objects stay as they are. An UPDATE makes the same
// changes to the stored object as the request makes to its old object.
func (s *server) prepareForNode(ctx context.Context, r *request, _ string) (sender, error) {
	toServer, fromServer, err := s.uids(ctx)
	if err != nil {
		return nil, err
	}
	object, err := s.forServer(ctx, r, toServer)
	if err != nil {
		return nil, err
	}
	return r.sender(func(ctx context.Context, in dynamic.ResourceInterface) (map[string]any, error) {
		return sendForNode(ctx, in, r, object, fromServer)
	}), nil
}

func sendForNode(ctx context.Context, in dynamic.ResourceInterface, r *request, object *unstructured.Unstructured, fromServer *strings.Replacer) (map[string]any, error) {
	var got *unstructured.Unstructured
	var err error
	// The API server needs a moment to see the role binding of the users.
	if failed := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		got, err = dryRun(ctx, in, r, object)
		return err == nil || !strings.Contains(err.Error(), `is forbidden: User "`), nil
	}); failed != nil {
		return nil, errors.Join(failed, err)
	}
	var status *apierrors.StatusError
	switch {
	case errors.As(err, &status):
		status.ErrStatus.Message = fromServer.Replace(status.ErrStatus.Message)
		return nil, status
	case err != nil || got == nil || got.GetName() == "" || got.GetKind() != r.kind.Kind:
		return nil, err
	}
	unstructured.RemoveNestedField(got.Object, "spec", "audiences") // by default, the address of the API server
	unstructured.RemoveNestedField(got.Object, "spec", "extra")     // the identity of the client certificate, which differs
	unstructured.RemoveNestedField(got.Object, "status", "token")
	unstructured.RemoveNestedField(got.Object, "status", "expirationTimestamp")
	return replaced(got.Object, fromServer)
}

// dryRun sends the request. The argument object is nil for a DELETE.
func dryRun(ctx context.Context, in dynamic.ResourceInterface, r *request, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	all := []string{metav1.DryRunAll}
	var subresources []string
	if r.subresource != "" {
		subresources = []string{r.subresource}
	}
	switch r.operation {
	case admission.Create:
		return in.Create(ctx, object, metav1.CreateOptions{DryRun: all}, subresources...)
	case admission.Update:
		return in.Update(ctx, object, metav1.UpdateOptions{DryRun: all}, subresources...)
	}
	return nil, in.Delete(ctx, r.name, metav1.DeleteOptions{DryRun: all})
}

// forServer returns the object to send. The error is errNotSendable if the API server lacks the old object or the API,
// or does not serve such requests.
func (s *server) forServer(ctx context.Context, r *request, uids *strings.Replacer) (*unstructured.Unstructured, error) {
	if r.resource.Resource == "podcertificaterequests" || r.subresource == "approval" || r.name == "" && (r.subresource != "" || r.operation != admission.Create) {
		return nil, errNotSendable
	}
	var object *unstructured.Unstructured
	if r.object != nil {
		content, err := wire(r.object, r.kind, "")
		if err != nil {
			return nil, err
		}
		encoded, err := replaced(content.Object, uids)
		if err != nil {
			return nil, err
		}
		object = &unstructured.Unstructured{Object: encoded}
		unstructured.RemoveNestedField(object.Object, "metadata", "uid")
	}
	if r.operation == admission.Create {
		if r.subresource == "status" {
			return nil, errNotSendable
		}
		return object, nil
	}
	stored, err := resourceOf(s.dynamic, r).Get(ctx, r.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, errNotSendable
	case err != nil || object == nil:
		return nil, err
	}
	return s.changedAs(r, object, stored)
}

// changedAs applies the changes that the request makes to its old object to the stored object, and returns the result.
func (s *server) changedAs(r *request, object, stored *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	old, err := wire(r.old, r.kind, "")
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(old.Object, "metadata", "uid")
	before, errBefore := old.MarshalJSON()
	after, errAfter := object.MarshalJSON()
	document, errStored := stored.MarshalJSON()
	patch, errPatch := jsonpatch.CreateMergePatch(before, after)
	if err := errors.Join(errBefore, errAfter, errStored, errPatch); err != nil {
		return nil, err
	}
	if document, err = jsonpatch.MergePatch(document, patch); err != nil {
		return nil, err
	}
	result := &unstructured.Unstructured{}
	return result, result.UnmarshalJSON(document)
}

// uids returns two replacers: from the UIDs in requests to those that the API server has given to Nodes and Pods, and
// back.
func (s *server) uids(ctx context.Context) (toServer, fromServer *strings.Replacer, err error) {
	nodes, err := s.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	pods, err := s.typed.CoreV1().Pods("plain").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	var to, from []string
	add := func(m metav1.ObjectMeta) {
		name, uid := `"uid-`+m.Name+`"`, `"`+string(m.UID)+`"`
		to, from = append(to, name, uid), append(from, uid, name, string(m.UID), "uid-"+m.Name)
	}
	for _, node := range nodes.Items {
		add(node.ObjectMeta)
	}
	for _, pod := range pods.Items {
		add(pod.ObjectMeta)
	}
	return strings.NewReplacer(to...), strings.NewReplacer(from...), nil
}

// replaced returns the content with the replacements in its JSON.
func replaced(content map[string]any, replacements *strings.Replacer) (map[string]any, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	err = json.Unmarshal([]byte(replacements.Replace(string(text))), &object.Object)
	return object.Object, err
}
