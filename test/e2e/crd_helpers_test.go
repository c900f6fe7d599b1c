// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// gadgetGroup is the API group of gadgets, which the API server serves in two versions.
const gadgetGroup = "shop.example.com"

// gadgetCRD has the same schema in both versions. The conversion strategy None changes only the
// apiVersion.
const gadgetCRD = `
metadata: {name: gadgets.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  conversion: {strategy: None}
  versions:
  - name: v1
    served: true
    storage: false
    subresources: &subresources
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: string}
              replicas: {type: integer, default: 2}
          status:
            type: object
            properties:
              phase: {type: string}
              replicas: {type: integer}
  - name: v1alpha1
    served: true
    storage: true
    subresources: *subresources
    schema: *schema
`

var gadgets dynamic.Interface

// installGadgets installs the gadget CRD and waits until the API server serves it.
func installGadgets() {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.UnmarshalStrict([]byte(gadgetCRD), crd)).To(Succeed())
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	Expect(err).NotTo(HaveOccurred())
	gadgets, err = dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
}

// gadgetsOf returns a client for one version in one namespace.
func gadgetsOf(version, namespace string) dynamic.ResourceInterface {
	return gadgets.Resource(schema.GroupVersionResource{Group: gadgetGroup, Version: version, Resource: "gadgets"}).Namespace(namespace)
}

// createGadget creates a gadget with this spec and returns the response.
func createGadget(ctx context.Context, version, namespace, name string, spec map[string]any) (*unstructured.Unstructured, error) {
	return gadgetsOf(version, namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gadgetGroup + "/" + version, "kind": "Gadget",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{})
}

func gadgetKind(version string) metav1.GroupVersionKind {
	return metav1.GroupVersionKind{Group: gadgetGroup, Version: version, Kind: "Gadget"}
}

func gadgetResource(version string) metav1.GroupVersionResource {
	return metav1.GroupVersionResource{Group: gadgetGroup, Version: version, Resource: "gadgets"}
}
