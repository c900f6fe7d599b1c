// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const saltMap = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: web-session
  namespace: shop
  labels: {sessions.acme.io/salted: "true"}
data:
  ttl: 30m
`

func salt() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

func salted(req admission.Request, config *corev1.ConfigMap, value string) admission.Response {
	if config.Data == nil {
		config.Data = map[string]string{}
	}
	config.Data["salt"] = value
	raw, err := json.Marshal(config)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, raw)
}

func saltBroken(decoder admission.Decoder) admission.HandlerFunc {
	return func(_ context.Context, req admission.Request) admission.Response {
		config := &corev1.ConfigMap{}
		if err := decoder.Decode(req, config); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if config.Labels["sessions.acme.io/salted"] != "true" || config.Data["salt"] != "" {
			return admission.Allowed("")
		}
		return salted(req, config, salt())
	}
}

func saltCorrect(decoder admission.Decoder) admission.HandlerFunc {
	return func(_ context.Context, req admission.Request) admission.Response {
		config, old := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		if err := decoder.Decode(req, config); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		_, text := config.Data["salt"]
		_, binary := config.BinaryData["salt"]
		wanted := config.Labels["sessions.acme.io/salted"] == "true"
		if text || binary {
			return admission.Allowed("has one")
		}
		if req.Operation == admissionv1.Update {
			if err := decoder.DecodeRaw(req.OldObject, old); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			immutable := old.Immutable != nil && *old.Immutable
			if last, ok := old.Data["salt"]; ok && (wanted || immutable) {
				return salted(req, config, last)
			}
			if immutable {
				return admission.Allowed("immutable")
			}
		}
		if !wanted {
			return admission.Allowed("")
		}
		return salted(req, config, salt())
	}
}

func saltProof(p *prover) string {
	stored := p.created(p.object(saltMap))
	if again := p.created(stored); fmt.Sprint(again) != fmt.Sprint(stored) {
		return "changed on reinvocation"
	}
	manifest := p.object(saltMap)
	set(manifest, "60m", "data", "ttl")
	out := p.updated(stored, manifest)
	if a, b := nested(stored, "data")["salt"], nested(out, "data")["salt"]; a != b {
		return fmt.Sprintf("a replace that changes the ttl draws another salt, so all sessions end: %v, then %v", a, b)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z10b1-salt-drawn-again",
		Summary: "A random value is drawn again if an UPDATE has the author's manifest.",
		Why: "CREATE draws data.salt. UPDATE by the author's manifest with another ttl (kubectl replace) has no salt, so another one is drawn: all sessions end. " +
			"If the ConfigMap is immutable, even a replace by the unchanged manifest is rejected.",
		Webhook: register("salt.sessions.acme.io", "", "v1", "configmaps", create, update),
		New: func() http.Handler {
			return &admission.Webhook{Handler: saltBroken(admission.NewDecoder(clientgoscheme.Scheme))}
		},
		Samples: []string{saltMap},
		Proof:   saltProof,
	})
	_ = add(hookCase{
		Name:    "Z10c1-salt-kept",
		Summary: "A random value is drawn once, kept on reinvocation, and taken from the old object on UPDATE.",
		Why:     "The value is drawn only if neither the new nor the old object has one, so it stays for the lifetime of the object. The webhook has no side effects, so dry runs are safe. Immutable ConfigMaps that are older than the webhook are left alone. Different objects get different values, as intended.",
		Webhook: register("salt.sessions.acme.io", "", "v1", "configmaps", create, update),
		New: func() http.Handler {
			return &admission.Webhook{Handler: saltCorrect(admission.NewDecoder(clientgoscheme.Scheme))}
		},
		Samples: []string{saltMap},
		Proof:   saltProof,
	})
)

const scratchPod = `
apiVersion: v1
kind: Pod
metadata:
  name: encoder
  namespace: media
  annotations: {scratch.acme.io/size: 2Gi}
spec:
  containers:
  - name: encoder
    image: registry.acme.io/media/encoder:8
  - name: uploader
    image: registry.acme.io/media/uploader:8
`

type scratchVolumes struct{}

// Default shares a scratch volume among all containers.
func (*scratchVolumes) Default(_ context.Context, pod *corev1.Pod) error {
	if pod.Annotations["scratch.acme.io/size"] == "" {
		return nil
	}
	name := "scratch-" + salt()[:6] // must not collide with volumes of the user
	used := false
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/scratch" }) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/scratch"})
			used = true
		}
	}
	if used {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	return nil
}

var _ = add(hookCase{
	Name:    "Z10b2-scratch-random-name",
	Summary: "A shared volume has a random name, which the webhook does not find again.",
	Why: "CREATE mounts scratch-a1b2c3 in both containers. Another webhook adds a container, so the webhook is called again: the new container gets a second volume scratch-d4e5f6. " +
		"The containers do not share their files, which is the purpose of the volume. If the webhook were called last, they would.",
	Webhook: register("scratch.acme.io", "", "v1", "pods", create),
	New:     func() http.Handler { return admission.WithDefaulter(clientgoscheme.Scheme, &scratchVolumes{}) },
	Samples: []string{scratchPod},
	Proof: func(p *prover) string {
		pod := p.created(p.object(scratchPod))
		spec := nested(pod, "spec")
		spec["containers"] = append(spec["containers"].([]any), map[string]any{"name": "late", "image": "late:1"})
		pod = p.created(pod)
		if volumes := names(nested(pod, "spec")["volumes"]); len(volumes) != 1 {
			return fmt.Sprintf("the containers share no volume: %q", volumes)
		}
		return ""
	},
})

const backupClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  generateName: uploads-
  namespace: media
spec:
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 500Gi}}
`

const backupKey = "backup.acme.io/minute"

// backupMinutes spreads the backups of all claims over the hour.
type backupMinutes struct{ decoder admission.Decoder }

func (b *backupMinutes) Default(ctx context.Context, pvc *corev1.PersistentVolumeClaim) error {
	if _, ok := pvc.Annotations[backupKey]; ok {
		return nil
	}
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	name := pvc.Name
	if pvc.GenerateName != "" {
		name = pvc.GenerateName // before and after the API server generates the name
	}
	h := fnv.New32a()
	h.Write([]byte(req.Namespace + "/" + name))
	minute := strconv.Itoa(int(h.Sum32() % 60))
	if req.Operation == admissionv1.Update {
		old := &corev1.PersistentVolumeClaim{}
		if err := b.decoder.DecodeRaw(req.OldObject, old); err != nil {
			return err
		}
		if last, ok := old.Annotations[backupKey]; ok {
			minute = last
		}
	}
	if pvc.Annotations == nil {
		pvc.Annotations = map[string]string{}
	}
	pvc.Annotations[backupKey] = minute
	return nil
}

var _ = add(hookCase{
	Name:    "Z10c2-backup-minute",
	Summary: "A value that looks random is a hash of the namespace and of generateName or name.",
	Why: "The hash is the same in all replicas and calls, also after the API server has completed a generated name. A value that is set is kept, and one that a replace drops is taken from the old object. " +
		"Annotations of a claim may change at any time.",
	Webhook: register("minutes.backup.acme.io", "", "v1", "persistentvolumeclaims", create, update),
	New: func() http.Handler {
		return admission.WithDefaulter(clientgoscheme.Scheme, &backupMinutes{admission.NewDecoder(clientgoscheme.Scheme)})
	},
	Samples: []string{backupClaim},
	Proof: func(p *prover) string {
		first := p.created(p.object(backupClaim))
		p.restart()
		named := p.object(backupClaim)
		set(named, "uploads-x7k2p", "metadata", "name")
		replaced := p.updated(first, named)
		if a, b := nested(first, "metadata", "annotations")[backupKey], nested(replaced, "metadata", "annotations")[backupKey]; a != b || a == nil {
			return fmt.Sprintf("%v, then %v", a, b)
		}
		return ""
	},
})
