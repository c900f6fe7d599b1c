// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ReadSecret returns the Secret, or the zero Secret if there is none.
func (k *Client) ReadSecret(ctx context.Context) (Secret, error) {
	object, err := k.getSecret(ctx)
	if apierrors.IsNotFound(err) {
		return Secret{}, nil
	}
	if err != nil {
		return Secret{}, k.explain(err, "get", k.secret())
	}
	data, err := secretData(object)
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", k.secret(), err)
	}
	read := Secret{Version: object.GetResourceVersion(), Data: data}
	if err := checkWritable(object); err != nil {
		read.Closed = fmt.Errorf("%s %w", k.secret(), err)
	}
	return read, nil
}

// getSecret reads the Secret without a resourceVersion, which makes it a quorum read.
func (k *Client) getSecret(ctx context.Context) (*unstructured.Unstructured, error) {
	ctx, cancel := k.request(ctx)
	defer cancel()
	return k.on(k.secret()).Get(ctx, k.secretName, metav1.GetOptions{})
}

func secretData(object *unstructured.Unstructured) (map[string][]byte, error) {
	texts, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return nil, err
	}
	data := make(map[string][]byte, len(texts))
	for key, text := range texts {
		if data[key], err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("data.%s: %w", key, err)
		}
	}
	return data, nil
}

func setSecretData(object *unstructured.Unstructured, data map[string][]byte) {
	texts := make(map[string]any, len(data))
	for key, value := range data {
		texts[key] = base64.StdEncoding.EncodeToString(value)
	}
	object.Object["data"] = texts
}

// WriteSecret creates the Secret if s has no version, and otherwise updates it if the stored version is still
// s.Version.
func (k *Client) WriteSecret(ctx context.Context, s Secret) error {
	if s.Version == "" {
		return k.createSecret(ctx, s.Data)
	}
	object, err := k.getSecret(ctx)
	if err != nil {
		return k.conflictOr(err, "get")
	}
	if object.GetResourceVersion() != s.Version {
		return fmt.Errorf("%s: %w", k.secret(), ErrConflict)
	}
	if err := checkWritable(object); err != nil {
		return fmt.Errorf("%s %w", k.secret(), err)
	}
	setSecretData(object, s.Data) // and keep the labels, annotations and owners that others have put on it
	ctx, cancel := k.request(ctx)
	defer cancel()
	_, err = k.on(k.secret()).Update(ctx, object, metav1.UpdateOptions{FieldManager: k.fieldManager})
	return k.conflictOr(err, "update")
}

// checkWritable returns an error for a Secret that is being deleted, is immutable, or has another type than Opaque.
func checkWritable(object *unstructured.Unstructured) error {
	if object.GetDeletionTimestamp() != nil {
		return fmt.Errorf("is being deleted and waits for the finalizers %s: it is created again after the deletion",
			strings.Join(object.GetFinalizers(), ", "))
	}
	if immutable, _, _ := unstructured.NestedBool(object.Object, "immutable"); immutable {
		return fmt.Errorf("is immutable, so the CA cannot be replaced: delete the Secret; the replicas create it again; if they have no permission to create Secrets, apply the manifest of the Secret")
	}
	if kind, _, _ := unstructured.NestedString(object.Object, "type"); kind != string(corev1.SecretTypeOpaque) {
		return fmt.Errorf("has the type %s, want %s: choose another name, or delete the Secret if nothing uses it", kind, corev1.SecretTypeOpaque)
	}
	return nil
}

func (k *Client) createSecret(ctx context.Context, data map[string][]byte) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeOpaque),
	}}
	object.SetName(k.secretName)
	object.SetNamespace(k.namespace)
	object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "admitkit"})
	setSecretData(object, data)
	ctx, cancel := k.request(ctx)
	defer cancel()
	_, err := k.on(k.secret()).Create(ctx, object, metav1.CreateOptions{FieldManager: k.fieldManager})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: there is no namespace %s: create it first: %w", k.secret(), k.namespace, err)
	}
	return k.conflictOr(err, "create")
}

// conflictOr returns ErrConflict if another client has written the object first, and otherwise explains err.
func (k *Client) conflictOr(err error, verb string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w", k.secret(), ErrConflict)
	}
	return k.explain(err, verb, k.secret())
}
