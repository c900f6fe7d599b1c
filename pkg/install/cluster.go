// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// A cluster sends the requests of an installation to an API server. kubeCluster is the implementation; tests have a
// fake one.
type cluster interface {
	// read returns the stored configuration, or nil if there is none.
	read(context.Context, sort) (*unstructured.Unstructured, error)
	// apply applies a configuration. If object has a resourceVersion and the stored one is different, apply returns
	// errChanged. cut and remove check the resourceVersion of l in the same way.
	apply(ctx context.Context, s sort, object *unstructured.Unstructured, force bool) error
	// cut removes the webhooks with these indexes, even if another manager owns fields of them.
	cut(ctx context.Context, s sort, l live, indexes []int) error
	// remove deletes the configuration.
	remove(ctx context.Context, s sort, l live) error
	// ask sends the marker request with this label value over a new connection. It returns the API server's error
	// unchanged, errStripped, or nil if nothing denied the request.
	ask(ctx context.Context, label string) error
	// deployment returns the webhook's Deployment.
	deployment(ctx context.Context, name string) (*unstructured.Unstructured, error)
}

// requestTimeout limits one request. A marker request may take as long as the timeout of a webhook.
const requestTimeout = 15 * time.Second

// kubeCluster sends requests to a real API server.
type kubeCluster struct {
	client    dynamic.Interface
	fresh     dynamic.Interface // opens a connection per request
	namespace string
	name      string // of both configurations
	owned     bool   // the Namespace owns the configurations
}

func newKubeCluster(o Options) (*kubeCluster, error) {
	config := rest.CopyConfig(o.Config)
	config.QPS, config.Burst = -1, -1 // no limit in the client: Options.Interval limits the rate
	config.Timeout = requestTimeout
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client from Options.Config: %w", err)
	}
	fresh, err := dynamic.NewForConfig(unpooled(config))
	if err != nil {
		return nil, fmt.Errorf("cannot create a client from Options.Config: %w", err)
	}
	return &kubeCluster{client: client, fresh: fresh, namespace: o.namespace(), name: o.Configuration.Name, owned: o.OwnedByNamespace}, nil
}

// unpooled returns the configuration of a client that never reuses a connection.
func unpooled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // warnings of other webhooks would appear once per check
	if config.Transport == nil {
		// A dial function of its own gives the client a transport and a pool of its own.
		dial := config.Dial
		if dial == nil {
			dial = (&net.Dialer{Timeout: requestTimeout, KeepAlive: requestTimeout}).DialContext
		}
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, network, address)
		}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Close = true
			return next.RoundTrip(r)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (c *kubeCluster) read(ctx context.Context, s sort) (*unstructured.Unstructured, error) {
	object, err := c.client.Resource(configurations[s]).Get(ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, c.explain(s, "read", err)
}

func (c *kubeCluster) apply(ctx context.Context, s sort, object *unstructured.Unstructured, force bool) error {
	if c.owned && len(webhooks(object)) > 0 { // a configuration without our webhooks belongs to others
		owner, err := c.owner(ctx)
		if err != nil {
			return err
		}
		object = object.DeepCopy()
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
	}
	_, err := c.client.Resource(configurations[s]).Apply(ctx, c.name, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: force})
	return c.explain(s, "apply", err)
}

// owner returns a reference to the Namespace. It reads the Namespace each time, because a new Namespace with the same
// name has another UID.
func (c *kubeCluster) owner(ctx context.Context) (metav1.OwnerReference, error) {
	found, err := c.client.Resource(namespaces).Get(ctx, c.namespace, metav1.GetOptions{})
	if err != nil {
		return metav1.OwnerReference{}, explain(fmt.Sprintf("cannot read Namespace %s, which must own the configurations", c.namespace), err)
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: c.namespace, UID: found.GetUID()}, nil
}

func (c *kubeCluster) cut(ctx context.Context, s sort, l live, indexes []int) error {
	// The patch sets resourceVersion, so it fails with a conflict if the object changed since it was read. The indexes are
	// therefore still valid.
	operations := []map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": l.resourceVersion}}
	for _, i := range slices.Backward(slices.Sorted(slices.Values(indexes))) {
		operations = append(operations, map[string]any{"op": "remove", "path": fmt.Sprintf("/webhooks/%d", i)})
	}
	body, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	_, err = c.client.Resource(configurations[s]).Patch(ctx, c.name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) { // deleted meanwhile
		return fmt.Errorf("cannot change %s %s: %w (%w)", kindOf[s], c.name, errChanged, err)
	}
	return c.explain(s, "change", err)
}

func (c *kubeCluster) remove(ctx context.Context, s sort, l live) error {
	err := c.client.Resource(configurations[s]).Delete(ctx, c.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &l.uid, ResourceVersion: &l.resourceVersion},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return c.explain(s, "delete", err)
}

// ask sends an apply instead of a create, because RBAC can restrict an apply to one name.
func (c *kubeCluster) ask(ctx context.Context, label string) error {
	question := &unstructured.Unstructured{}
	question.SetAPIVersion(leases.GroupVersion().String())
	question.SetKind("Lease")
	question.SetName(markerObject)
	question.SetLabels(map[string]string{markerLabel: label})
	answer, err := c.fresh.Resource(leases).Namespace(c.namespace).Apply(ctx, markerObject, question, metav1.ApplyOptions{
		FieldManager: fieldManager, Force: true, DryRun: []string{metav1.DryRunAll},
	})
	if err == nil && answer.GetLabels()[markerLabel] != label {
		return errStripped
	}
	return err
}

func (c *kubeCluster) deployment(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	object, err := c.client.Resource(deployments).Namespace(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, explain(fmt.Sprintf("cannot read Deployment %s/%s", c.namespace, name), err)
	}
	return object, nil
}

func (c *kubeCluster) explain(s sort, do string, err error) error {
	if err == nil {
		return nil
	}
	return explain(fmt.Sprintf("cannot %s %s %s", do, kindOf[s], c.name), err)
}
