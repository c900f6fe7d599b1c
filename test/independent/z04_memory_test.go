// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const costService = `
apiVersion: v1
kind: Service
metadata:
  name: api
  namespace: billing
  annotations: {finops.acme.io/cost-center: cc-4711}
spec:
  selector: {app: api}
  ports:
  - {name: http, port: 80, targetPort: 8080}
`

// costCentres remembers the cost centre of each Service, because some pipelines drop the annotation on later updates.
type costCentres struct {
	mu   sync.Mutex
	last map[string]string
}

func (c *costCentres) mutate(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var service map[string]any
	if err := json.Unmarshal(req.Object.Raw, &service); err != nil {
		return nil, err
	}
	metadata := nested(service, "metadata")
	centre := str(nested(metadata, "annotations")["finops.acme.io/cost-center"])
	dry := req.DryRun != nil && *req.DryRun
	c.mu.Lock()
	if centre == "" {
		centre = c.last[req.Name]
	} else if !dry {
		c.last[req.Name] = centre
	}
	c.mu.Unlock()
	if centre == "" {
		return nil, nil
	}
	labels := nested(metadata, "labels")
	if labels == nil {
		return operations([]patchOp{{"add", "/metadata/labels", map[string]any{"cost-center": centre}}})
	}
	if _, ok := labels["cost-center"]; ok {
		return nil, nil
	}
	return operations([]patchOp{{"add", "/metadata/labels/cost-center", centre}})
}

// costLabel labels a Service with the cost centre: at first that of its namespace, later the one that it had.
func costLabel(decoder admission.Decoder) admission.HandlerFunc {
	return func(_ context.Context, req admission.Request) admission.Response {
		service, old := &corev1.Service{}, &corev1.Service{}
		if err := decoder.Decode(req, service); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if _, ok := service.Labels["cost-center"]; ok {
			return admission.Allowed("has a cost centre")
		}
		centre := req.Namespace
		if req.Operation == admissionv1.Update {
			if err := decoder.DecodeRaw(req.OldObject, old); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			if last, ok := old.Labels["cost-center"]; ok {
				centre = last
			}
		}
		if service.Labels == nil {
			service.Labels = map[string]string{}
		}
		service.Labels["cost-center"] = centre
		raw, err := json.Marshal(service)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(req.Object.Raw, raw)
	}
}

func costProof(p *prover) string {
	p.created(p.object(costService))
	other := p.object(costService)
	set(other, "search", "metadata", "namespace")
	delete(nested(other, "metadata"), "annotations")
	after := nested(p.created(other), "metadata", "labels")["cost-center"]
	p.restart()
	fresh := nested(p.created(other), "metadata", "labels")["cost-center"]
	if after != fresh {
		return fmt.Sprintf("search/api gets the cost centre %v after billing/api was created, and %v after a restart", after, fresh)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z04b1-cost-centre-by-name",
		Summary: "The webhook remembers values by the object's name, without its namespace.",
		Why: "CREATE billing/api with annotation cc-4711, then CREATE search/api without annotation: search/api gets label cost-center=cc-4711 of another team. " +
			"After a restart of the webhook, or on another replica, it gets none. Also an api that is deleted and created anew inherits the value.",
		Webhook: register("costs.finops.acme.io", "", "v1", "services", create, update),
		New: func() http.Handler {
			return serve((&costCentres{last: map[string]string{}}).mutate)
		},
		Samples: []string{costService},
		Proof:   costProof,
	})
	_ = add(hookCase{
		Name:    "Z04c1-cost-centre-from-old-object",
		Summary: "The last value comes from the old object of the request, not from memory.",
		Why: "At CREATE the namespace is the value, a valid label of at most 63 characters. A label that is present is never changed. On UPDATE without the label, the old object's value is kept, " +
			"as the API server keeps a clusterIP. All replicas agree, because nothing is remembered.",
		Webhook: register("costs.finops.acme.io", "", "v1", "services", create, update),
		New: func() http.Handler {
			return &admission.Webhook{Handler: costLabel(admission.NewDecoder(clientgoscheme.Scheme))}
		},
		Samples: []string{costService},
		Proof:   costProof,
	})
)

const tierClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  namespace: shop
  labels: {storage.acme.io/tier: gold}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 10Gi}}
`

var storageClasses = map[string]string{"gold": "ssd-replicated", "silver": "ssd", "bronze": "hdd"}

func wantsClass(pvc *corev1.PersistentVolumeClaim) bool {
	_, legacy := pvc.Annotations["volume.beta.kubernetes.io/storage-class"]
	return !legacy && pvc.Spec.StorageClassName == nil && pvc.Spec.VolumeName == "" && pvc.Spec.Selector == nil
}

// classByUID computes the class of a claim once. Labels of a claim may change later, but its class may not.
type classByUID struct {
	mu      sync.Mutex
	classes map[types.UID]string
}

func (m *classByUID) Default(_ context.Context, pvc *corev1.PersistentVolumeClaim) error {
	if !wantsClass(pvc) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	class, ok := m.classes[pvc.UID]
	if !ok {
		if class, ok = storageClasses[pvc.Labels["storage.acme.io/tier"]]; !ok {
			return nil
		}
		m.classes[pvc.UID] = class
	}
	pvc.Spec.StorageClassName = &class
	return nil
}

// classByTier caches the class of a tier.
type classByTier struct{ cache sync.Map }

func (m *classByTier) Default(_ context.Context, pvc *corev1.PersistentVolumeClaim) error {
	if !wantsClass(pvc) {
		return nil
	}
	tier := pvc.Labels["storage.acme.io/tier"]
	cached, ok := m.cache.Load(tier)
	if !ok {
		class := storageClasses[tier] // a look-up that costs something
		if class == "" {
			return nil
		}
		cached, _ = m.cache.LoadOrStore(tier, class)
	}
	class := cached.(string)
	pvc.Spec.StorageClassName = &class
	return nil
}

func classProof(p *prover) string {
	first := p.object(tierClaim)
	set(first, "bronze", "metadata", "labels", "storage.acme.io/tier")
	p.created(first)
	second := p.created(p.object(tierClaim))
	if class := nested(second, "spec")["storageClassName"]; class != "ssd-replicated" {
		return fmt.Sprintf("a gold claim after a bronze one gets class %v, permanently", class)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z04b2-storage-class-by-uid",
		Summary: "The webhook caches its answer by metadata.uid, which is empty at CREATE.",
		Why: "CREATE of a bronze claim, then of a gold one: the API server sets metadata.uid after admission, so both have the UID \"\" and the gold claim gets class hdd of the first one. " +
			"The class cannot be changed later.",
		Webhook: register("classes.storage.acme.io", "", "v1", "persistentvolumeclaims", create),
		New: func() http.Handler {
			return admission.WithDefaulter(clientgoscheme.Scheme, &classByUID{classes: map[types.UID]string{}})
		},
		Samples: []string{tierClaim},
		Proof:   classProof,
	})
	_ = add(hookCase{
		Name:    "Z04c2-storage-class-by-tier",
		Summary: "The cache key has all of the input that the answer depends on.",
		Why: "The cache holds a pure function of its key (the tier), so no answer depends on it. CREATE only, as the class is immutable; a class that is set, also to \"\", " +
			"a legacy annotation and a claim for a given volume are respected.",
		Webhook: register("classes.storage.acme.io", "", "v1", "persistentvolumeclaims", create),
		New: func() http.Handler {
			return admission.WithDefaulter(clientgoscheme.Scheme, &classByTier{})
		},
		Samples: []string{tierClaim},
		Proof:   classProof,
	})
)
