// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const t04PodSample = `
apiVersion: v1
kind: Pod
metadata:
  generateName: encoder-7c9f5d-
  namespace: media
  labels: {app: encoder, pool.fjord.example/spot: "true"}
spec:
  containers:
    - name: encoder
      image: registry.fjord.example/media/encoder:6.2
`

var t04Toleration = map[string]any{"key": "pool.fjord.example/spot", "operator": "Exists", "effect": "NoSchedule"}

var _ = add(hookCase{
	Name:    "T04b1-spot-toleration-seen-by-name",
	Summary: "Pods with a label get a toleration for spot nodes. The server remembers the names of pods that it has changed, so that a second call does not add the toleration twice.",
	Why:     "Pods of a ReplicaSet have no name yet when they are created, so they all share one entry of the memory. The second pod, and each pod that is created again under the same name, gets no toleration.",
	Webhook: register("spot.fjord.example", "", "v1", "pods", create),
	Samples: []string{t04PodSample},
	New: func() http.Handler {
		var mu sync.Mutex
		seen := map[string]bool{}
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("metadata", "labels", "pool.fjord.example/spot")) != "true" {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			key := r.Namespace + "/" + r.Name
			if seen[key] {
				return nil
			}
			seen[key] = true
			e.push(t04Toleration, "spec", "tolerations")
			return nil
		})
	},
	Proof: func(p *prover) string {
		first, second := p.created(p.object(t04PodSample)), p.created(p.object(t04PodSample))
		if !same(first, second) {
			return fmt.Sprintf("the second pod has the tolerations %v", reach(second, "spec", "tolerations"))
		}
		return ""
	},
})

const t04ClaimSample = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: warehouse}
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests: {storage: 10Gi}
`

// t04Headroom returns the size with a tenth more, in whole Gi.
func t04Headroom(size string) (string, error) {
	q, err := resource.ParseQuantity(size)
	if err != nil {
		return "", err
	}
	const gi = 1 << 30
	return fmt.Sprintf("%dGi", (q.Value()*11/10+gi-1)/gi), nil
}

var _ = add(hookCase{
	Name:    "T04b2-claim-headroom-remembered",
	Summary: "Claims get a tenth more than asked, in whole Gi. So that this is not done twice, an annotation keeps the size that was asked for first, and the size is derived from it.",
	Why:     "The annotation keeps the first requested size. If the author requests more later, the webhook derives the size from the old annotation and puts it back, so the claim can never grow.",
	Webhook: register("headroom.fjord.example", "", "v1", "persistentvolumeclaims", create, update),
	Samples: []string{t04ClaimSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			asked := str(e.get("metadata", "annotations", "storage.fjord.example/asked"))
			have := str(e.get("spec", "resources", "requests", "storage"))
			if asked == "" {
				asked = have
				e.set(asked, "metadata", "annotations", "storage.fjord.example/asked")
			}
			want, err := t04Headroom(asked)
			if err != nil {
				return err
			}
			if want != have {
				e.set(want, "spec", "resources", "requests", "storage")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t04ClaimSample))
		more := copyOf(live)
		set(more, "50Gi", "spec", "resources", "requests", "storage")
		out := p.updated(live, more)
		if got := str(reach(out, "spec", "resources", "requests", "storage")); got != "50Gi" && got != "55Gi" {
			return "50Gi becomes " + got
		}
		return ""
	},
})

const t04SpreadSample = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: broker, namespace: events}
spec:
  serviceName: broker
  replicas: 3
  selector:
    matchLabels: {app: broker}
  template:
    metadata:
      labels: {app: broker}
    spec:
      containers:
        - name: broker
          image: registry.fjord.example/events/broker:3.7
`

// t04Spread keeps rendered constraints. The key is the whole input.
type t04Spread struct {
	rendered sync.Map
}

func (s *t04Spread) constraint(selector any) (any, error) {
	key, err := json.Marshal(selector) // sorts the keys
	if err != nil {
		return nil, err
	}
	text, there := s.rendered.Load(string(key))
	if !there {
		text = fmt.Sprintf(`{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":%s}`, key)
		s.rendered.Store(string(key), text)
	}
	var out any
	return out, json.Unmarshal([]byte(text.(string)), &out)
}

var _ = add(hookCase{
	Name:    "T04c1-zone-spread-cached",
	Summary: "StatefulSets without a constraint on zones get one with their own selector. The server keeps what it has rendered.",
	Why:     "The memory is keyed by all that the result depends on, and each call gets a copy. A new server renders the same. An existing constraint on zones is kept.",
	Webhook: register("spread.fjord.example", "apps", "v1", "statefulsets", create, update),
	Samples: []string{t04SpreadSample},
	New: func() http.Handler {
		s := &t04Spread{}
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			path := under(templateSpec, "topologySpreadConstraints")
			for _, c := range objects(e.get(path...)) {
				if c["topologyKey"] == "topology.kubernetes.io/zone" {
					return nil
				}
			}
			constraint, err := s.constraint(e.get("spec", "selector"))
			if err != nil {
				return err
			}
			e.push(constraint, path...)
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t04SpreadSample))
		other := p.object(strings.ReplaceAll(t04SpreadSample, "broker", "zookeeper"))
		out := p.created(other)
		if got := reach(out, "spec", "template", "spec", "topologySpreadConstraints", "0", "labelSelector", "matchLabels", "app"); got != "zookeeper" {
			return fmt.Sprint("the constraint is for ", got)
		}
		p.restart()
		if out := p.updated(live, p.object(t04SpreadSample)); !same(out, live) {
			return "a new server gives another result"
		}
		return ""
	},
})

const t04OwnedSample = `
apiVersion: v1
kind: Pod
metadata:
  generateName: encoder-7c9f5d-
  namespace: media
  labels: {app: encoder, pod-template-hash: 7c9f5d}
  ownerReferences:
    - {apiVersion: apps/v1, kind: ReplicaSet, name: encoder-7c9f5d, uid: 0d9c4c0e-6f0f-4b7b-9d6c-5f3c1b6a7e11, controller: true}
spec:
  containers:
    - name: encoder
      image: registry.fjord.example/media/encoder:6.2
`

// t04Workload names the workload that a pod is part of.
func t04Workload(pod *corev1.Pod) string {
	name := pod.Name
	if name == "" {
		name = strings.TrimRight(pod.GenerateName, "-.")
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		name = owner.Name
		switch owner.Kind {
		case "ReplicaSet":
			if hash := pod.Labels["pod-template-hash"]; hash != "" {
				name = strings.TrimSuffix(name, "-"+hash)
			}
		case "Job": // those of a CronJob end in the minute of their schedule
			if i := strings.LastIndex(name, "-"); i > 0 && len(name)-i > 8 && strings.Trim(name[i+1:], "0123456789") == "" {
				name = name[:i]
			}
		}
	}
	if len(name) > 63 {
		sum := sha256.Sum256([]byte(name))
		name = strings.TrimRight(name[:54], "-.") + "-" + hex.EncodeToString(sum[:4])
	}
	return name
}

var _ = add(hookCase{
	Name:    "T04c2-workload-label-from-owner",
	Summary: "Each pod has a label with the name of its workload, for the bill. It is derived from the owner, or else from the name of the pod, and what others write there is overwritten.",
	Why:     "All that the label is derived from stays the same in each call, whether the pod has a name or not. Pods of one ReplicaSet get the same label. The value is never derived from the label itself.",
	Webhook: register("bill.fjord.example", "", "v1", "pods", create),
	Samples: []string{t04OwnedSample, t04PodSample},
	New: func() http.Handler {
		return serve(func(req *admissionv1.AdmissionRequest) ([]byte, error) {
			pod := &corev1.Pod{}
			if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
				return nil, err
			}
			workload := t04Workload(pod)
			switch {
			case pod.Labels["bill.fjord.example/workload"] == workload:
				return nil, nil
			case len(pod.Labels) == 0:
				return operations([]patchOp{{"add", "/metadata/labels", map[string]string{"bill.fjord.example/workload": workload}}})
			}
			return operations([]patchOp{{"add", "/metadata/labels/" + escape("bill.fjord.example/workload"), workload}})
		})
	},
	Proof: func(p *prover) string {
		var got []string
		pod := p.object(t04OwnedSample)
		for range 2 {
			got = append(got, str(reach(p.created(pod), "metadata", "labels", "bill.fjord.example/workload")))
		}
		owner := reach(pod, "metadata", "ownerReferences", "0").(map[string]any)
		owner["kind"], owner["name"] = "Job", "thumbnails-29012345"
		got = append(got, str(reach(p.created(pod), "metadata", "labels", "bill.fjord.example/workload")))
		owner["name"] = strings.Repeat("long.", 20) + "a"
		long := p.created(pod)
		if label := str(reach(long, "metadata", "labels", "bill.fjord.example/workload")); len(label) > 63 || !same(p.created(long), long) {
			return label
		}
		pod["metadata"] = map[string]any{"name": "lone", "namespace": "media", "labels": map[string]any{}}
		got = append(got, str(reach(p.created(pod), "metadata", "labels", "bill.fjord.example/workload")))
		if !slices.Equal(got, []string{"encoder", "encoder", "thumbnails", "lone"}) {
			return fmt.Sprintf("%q", got)
		}
		return ""
	},
})
