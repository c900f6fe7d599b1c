// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

const adminIngress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: admin
  namespace: backoffice
  labels: {exposure: staff}
spec:
  ingressClassName: nginx
  rules:
    - host: admin.northwind.example
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service: {name: admin, port: {name: http}}
`

// signIn are the annotations that make the ingress controller ask for a sign-in.
var signIn = []struct{ key, value string }{
	{"nginx.ingress.kubernetes.io/auth-url", "https://sso.northwind.example/check"},
	{"nginx.ingress.kubernetes.io/auth-signin", "https://sso.northwind.example/start"},
}

func signInHook() http.Handler {
	return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
		for _, a := range signIn {
			if e.get("metadata", "annotations", a.key) == nil {
				e.set(a.value, "metadata", "annotations", a.key)
			}
		}
		return nil
	})
}

var _ = add(hookCase{
	Name:    "F09b1-sign-in-at-create-only",
	Summary: "The security team wants a sign-in before each Ingress for staff: the webhook fills in two annotations for the ingress controller when the Ingress is created.",
	Why:     "The webhook is registered for CREATE only. When a pipeline replaces the Ingress by the author's manifest, the annotations are gone and the site is open.",
	Webhook: onlyLabelled(register("signin.northwind.io", "networking.k8s.io", "v1", "ingresses", create), "exposure", "staff"),
	Samples: []string{adminIngress},
	New:     signInHook,
	Proof: func(p *prover) string {
		live := p.created(p.object(adminIngress))
		out := p.updated(live, p.object(adminIngress))
		if reach(out, "metadata", "annotations", signIn[0].key) == nil {
			return "after a replacement there is no sign-in"
		}
		return ""
	},
})

var _ = add(hookCase{
	Name:    "F09c1-sign-in-at-create-and-update",
	Summary: "The security team wants a sign-in before each Ingress for staff: the webhook fills in two annotations for the ingress controller, at CREATE and at UPDATE.",
	Why:     "The author's manifest gets the same annotations each time. Absent annotations are added as a map once, and values of the author stay.",
	Webhook: onlyLabelled(register("signin2.northwind.io", "networking.k8s.io", "v1", "ingresses", create, update), "exposure", "staff"),
	Samples: []string{adminIngress},
	New:     signInHook,
	Proof: func(p *prover) string {
		live := p.created(p.object(adminIngress))
		if out := p.updated(live, p.object(adminIngress)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		for _, annotations := range []any{nil, map[string]any{}, map[string]any{signIn[1].key: "https://mine.example"}} {
			object := p.object(adminIngress)
			set(object, annotations, "metadata", "annotations")
			out := p.updated(live, object)
			own, _ := annotations.(map[string]any)
			if reach(out, "metadata", "annotations", signIn[0].key) != signIn[0].value || own != nil && own[signIn[1].key] != nil && reach(out, "metadata", "annotations", signIn[1].key) != own[signIn[1].key] {
				return fmt.Sprint(reach(out, "metadata", "annotations"))
			}
		}
		return ""
	},
})

const tierSample = `
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: search
  namespace: web
  annotations: {storage.northwind.io/tier: gold}
spec:
  serviceName: search
  replicas: 3
  selector:
    matchLabels: {app: search}
  template:
    metadata:
      labels: {app: search}
    spec:
      containers:
        - name: search
          image: registry.northwind.io/web/search:9.4.0
          volumeMounts:
            - {name: data, mountPath: /data}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        accessModes: [ReadWriteOnce]
        resources:
          requests: {storage: 100Gi}
`

var classOfTier = map[string]string{"gold": "ssd-replicated", "silver": "ssd", "bronze": "hdd"}

func claimClass(set map[string]any) any {
	return reach(set, "spec", "volumeClaimTemplates", "0", "spec", "storageClassName")
}

var _ = add(hookCase{
	Name:    "F09b2-class-follows-tier",
	Summary: "The storage team sells tiers: the webhook fills in the storage class of the claim templates of a StatefulSet from an annotation, where none is given.",
	Why:     "The claim templates cannot be changed. If the author changes or removes the annotation, the replacement gets another class than the StatefulSet has, and is rejected.",
	Webhook: register("tier.northwind.io", "apps", "v1", "statefulsets", create, update),
	Samples: []string{tierSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			class, known := classOfTier[str(e.get("metadata", "annotations", "storage.northwind.io/tier"))]
			if !known {
				return nil
			}
			for i := range objects(e.get("spec", "volumeClaimTemplates")) {
				if field := []string{"spec", "volumeClaimTemplates", index(i), "spec", "storageClassName"}; e.get(field...) == nil {
					e.set(class, field...)
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(tierSample))
		changed := p.object(tierSample)
		set(changed, "silver", "metadata", "annotations", "storage.northwind.io/tier")
		if a, b := claimClass(live), claimClass(p.updated(live, changed)); a != b {
			return fmt.Sprintf("the immutable class changes from %v to %v", a, b)
		}
		return ""
	},
})

var _ = add(hookCase{
	Name:    "F09c2-class-stays-as-it-was",
	Summary: "The storage team sells tiers: at CREATE, the webhook fills in the storage class of the claim templates of a StatefulSet from an annotation. At UPDATE, a template without a class gets the one that the old template of this name has.",
	Why:     "The claim templates cannot be changed, so the annotation counts at CREATE only. A StatefulSet from before the webhook keeps having no class.",
	Webhook: register("tier2.northwind.io", "apps", "v1", "statefulsets", create, update),
	Samples: []string{tierSample},
	New: func() http.Handler {
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			given := map[string]string{} // The classes of the old object by name.
			if r.Operation == admissionv1.Update {
				old, err := edit(r.OldObject.Raw)
				if err != nil {
					return err
				}
				for _, claim := range objects(old.get("spec", "volumeClaimTemplates")) {
					if class, ok := nested(claim, "spec")["storageClassName"].(string); ok {
						given[str(nested(claim, "metadata")["name"])] = class
					}
				}
			}
			for i, claim := range objects(e.get("spec", "volumeClaimTemplates")) {
				if nested(claim, "spec")["storageClassName"] != nil {
					continue
				}
				class, known := given[str(nested(claim, "metadata")["name"])]
				if r.Operation == admissionv1.Create {
					class, known = classOfTier[str(e.get("metadata", "annotations", "storage.northwind.io/tier"))]
				}
				if known {
					e.set(class, "spec", "volumeClaimTemplates", index(i), "spec", "storageClassName")
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(tierSample))
		for _, tier := range []any{"gold", "silver", "", nil} {
			changed := p.object(tierSample)
			set(changed, tier, "metadata", "annotations", "storage.northwind.io/tier")
			if a, b := claimClass(live), claimClass(p.updated(live, changed)); a != b {
				return fmt.Sprintf("the immutable class changes from %v to %v", a, b)
			}
		}
		before := normal(p.object(tierSample))
		if out := p.updated(before, before); claimClass(out) != nil {
			return "an old StatefulSet gets a class"
		}
		return ""
	},
})
