// SPDX-License-Identifier: Apache-2.0

package certs

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

func (k *kubeCluster) readSecret(ctx context.Context) (secret, error) {
	object, err := k.getSecret(ctx)
	if apierrors.IsNotFound(err) {
		return secret{}, nil
	}
	if err != nil {
		return secret{}, k.explain(err, "get", k.secret())
	}
	data, err := dataOf(object)
	if err != nil {
		return secret{}, fmt.Errorf("%s: %w", k.secret(), err)
	}
	read := secret{version: object.GetResourceVersion(), data: data}
	if err := writable(object); err != nil {
		read.closed = fmt.Errorf("%s %w", k.secret(), err)
	}
	return read, nil
}

// getSecret asks for no particular version, which is a quorum read.
func (k *kubeCluster) getSecret(ctx context.Context) (*unstructured.Unstructured, error) {
	ctx, cancel := k.request(ctx)
	defer cancel()
	return k.on(k.secret()).Get(ctx, k.secretName, metav1.GetOptions{})
}

func dataOf(object *unstructured.Unstructured) (map[string][]byte, error) {
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

func setData(object *unstructured.Unstructured, data map[string][]byte) {
	texts := make(map[string]any, len(data))
	for key, value := range data {
		texts[key] = base64.StdEncoding.EncodeToString(value)
	}
	object.Object["data"] = texts
}

func (k *kubeCluster) writeSecret(ctx context.Context, s secret) error {
	if s.version == "" {
		return k.createSecret(ctx, s.data)
	}
	object, err := k.getSecret(ctx)
	if err != nil {
		return k.lost(err, "get")
	}
	if object.GetResourceVersion() != s.version {
		return fmt.Errorf("%s: %w", k.secret(), errConflict)
	}
	if err := writable(object); err != nil {
		return fmt.Errorf("%s %w", k.secret(), err)
	}
	setData(object, s.data) // and keep the labels, annotations and owners that others have put on it
	ctx, cancel := k.request(ctx)
	defer cancel()
	_, err = k.on(k.secret()).Update(ctx, object, metav1.UpdateOptions{FieldManager: k.fieldManager})
	return k.lost(err, "update")
}

// writable finds what the API server would refuse in many words, or take and then lose.
func writable(object *unstructured.Unstructured) error {
	if object.GetDeletionTimestamp() != nil {
		return fmt.Errorf("is being deleted and waits for the finalizers %s: it is written again once it is gone",
			strings.Join(object.GetFinalizers(), ", "))
	}
	if immutable, _, _ := unstructured.NestedBool(object.Object, "immutable"); immutable {
		return fmt.Errorf("is immutable, so that the CA in it cannot be replaced: delete it, and it is written again")
	}
	if kind, _, _ := unstructured.NestedString(object.Object, "type"); kind != string(corev1.SecretTypeOpaque) {
		return fmt.Errorf("is of type %s, want %s: name another, or delete it if nothing uses it", kind, corev1.SecretTypeOpaque)
	}
	return nil
}

func (k *kubeCluster) createSecret(ctx context.Context, data map[string][]byte) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeOpaque),
	}}
	object.SetName(k.secretName)
	object.SetNamespace(k.namespace)
	object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "admitkit"})
	setData(object, data)
	ctx, cancel := k.request(ctx)
	defer cancel()
	_, err := k.on(k.secret()).Create(ctx, object, metav1.CreateOptions{FieldManager: k.fieldManager})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: there is no namespace %s: create it first: %w", k.secret(), k.namespace, err)
	}
	return k.lost(err, "create")
}

// lost turns the errors that tell of somebody faster into errConflict.
func (k *kubeCluster) lost(err error, verb string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w", k.secret(), errConflict)
	}
	return k.explain(err, verb, k.secret())
}
