// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/pkg/apis/core"
	originalpolicy "k8s.io/kubernetes/plugin/pkg/admission/imagepolicy"

	"github.com/admitkit/admitkit/examples/gallery/imagepolicywebhook"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// imageControllers returns the controller that asks a service about images. The original and the hook ask the same
// service.
func imageControllers() []*controller {
	policy := func(settings string) string {
		return "imagePolicy:\n  kubeConfigFile: " + imageService() + "\n  retryBackoff: 1\n" + settings
	}
	return []*controller{{
		name: originalpolicy.PluginName, register: originalpolicy.Register,
		configurations: []string{
			policy("  allowTTL: -1\n  denyTTL: -1\n"), policy("  allowTTL: 60\n"), policy("  defaultAllow: true\n"),
		},
		hooks: func(t *testing.T, _ cluster, file string) []*webhook.Hook {
			return []*webhook.Hook{imageHook(t, file)}
		},
		edges: (*generator).imageEdges, generate: (*generator).imageRequest,
		differences: []*difference{failedOpen(), otherKind()},
	}}
}

// imageHook returns the hook without the circuit breaker, which the original does not have.
func imageHook(t *testing.T, file string) *webhook.Hook {
	t.Helper()
	config := load(t, file, imagepolicywebhook.Load)
	config.OpenAfter = -1
	hook, err := imagepolicywebhook.Hook(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

// failedOpen declares that only the original annotates a Pod that is admitted although the service failed.
func failedOpen() *difference {
	return &difference{
		name:   "annotation of a failure",
		reason: "the original annotates a copy of the Pod, which the API server does not store; on API servers there is no difference",
		is: func(c *comparison) bool {
			original, ours := c.original, c.ours
			pod, ok := original.object.(*corev1.Pod)
			if original.verdict != allowed || ours.verdict != allowed || !ok || pod.Annotations[core.ImagePolicyFailedOpenKey] != "true" {
				return false
			}
			pod = pod.DeepCopy()
			delete(pod.Annotations, core.ImagePolicyFailedOpenKey)
			return equality.Semantic.DeepEqual(pod, ours.object)
		},
	}
}

// otherKind declares that the error has another text if the service answers with another kind.
func otherKind() *difference {
	return &difference{
		name:   "text for an answer of another kind",
		reason: "the original knows the other kinds of Kubernetes, and the hook knows only ImageReview",
		is: func(c *comparison) bool {
			original, ours := c.original, c.ours
			return original.verdict == denied && ours.verdict == denied && original.code == ours.code && original.reason == ours.reason &&
				strings.Contains(ours.message, `no kind "Pod" is registered`)
		},
	}
}

// images are the images that the service reviews. Its answer depends on the name before the colon.
var images = []string{
	"good:v1", "good:v2", "good:v3", "good:v4", "bad:v1", "bad:v2", "mute:v1", "down:v1", "busy:v1", "unknown:v1", "stranger:v1", "garbage:v1", "empty:v1", "other:v1", "status:v1", "none:v1",
}

// review is the handler of the service. Its answer depends only on the question.
func review(w http.ResponseWriter, r *http.Request) {
	var in v1alpha1.ImageReview
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Kind != "ImageReview" || in.APIVersion != v1alpha1.SchemeGroupVersion.String() {
		http.Error(w, "this is not an ImageReview", http.StatusBadRequest)
		return
	}
	worst := 0
	var names []string
	for _, c := range in.Spec.Containers {
		name, _, _ := strings.Cut(c.Image, ":")
		names = append(names, c.Image)
		worst = max(worst, slices.Index(imageKinds, name))
	}
	status := v1alpha1.ImageReviewStatus{Allowed: true, AuditAnnotations: map[string]string{"images": strconv.Itoa(len(names)), "not/valid": "a"}}
	switch imageKinds[worst] {
	case "bad":
		status.Allowed = in.Spec.Annotations["ticket.image-policy.k8s.io/number"] == "1"
		status.Reason = fmt.Sprintf("%s in %s", strings.Join(names, ", "), in.Spec.Namespace)
	case "mute":
		status.Allowed = false
	}
	reply := func(code int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
	switch imageKinds[worst] {
	case "down":
		reply(http.StatusInternalServerError, "down: "+strings.Join(names, ", "))
	case "busy":
		reply(http.StatusTooManyRequests, "")
	case "unknown":
		reply(http.StatusNotFound, "no "+strings.Join(names, ", "))
	case "stranger":
		reply(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"go away","code":403}`)
	case "garbage":
		reply(http.StatusOK, "<html>")
	case "empty":
		reply(http.StatusOK, "{}")
	case "other":
		reply(http.StatusOK, `{"kind":"Pod","apiVersion":"v1"}`)
	case "status":
		reply(http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Gone","message":"gone","code":410}`)
	case "none":
		reply(http.StatusNoContent, "")
	default:
		in.Status = status
		body, _ := json.Marshal(in)
		reply(http.StatusOK, string(body))
	}
}

// imageKinds lists the kinds of images. If a Pod has several kinds, the one that is last in the list determines the
// answer.
var imageKinds = []string{"good", "bad", "mute", "down", "busy", "unknown", "stranger", "garbage", "empty", "other", "status", "none"}

// imageService starts the service once, and returns the path of its kubeconfig.
var imageService = sync.OnceValue(func() string {
	server := httptest.NewTLSServer(http.HandlerFunc(review))
	folder, err := os.MkdirTemp("", "gallery")
	if err != nil {
		panic(err)
	}
	stopImageService = func() { server.Close(); _ = os.RemoveAll(folder) }
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a"}
	config.CurrentContext = "a"
	file := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		panic(err)
	}
	return file
})

// stopImageService stops the service, if it was started.
var stopImageService = func() {}

// imageEdges returns requests for Pods with each image in each kind of container, and in a volume.
func (g *generator) imageEdges() (all []*request) {
	for _, image := range images {
		for _, ticket := range []string{"", "1"} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "plain", Annotations: map[string]string{"other": "a"}}}
			if ticket != "" {
				pod.Annotations["ticket.image-policy.k8s.io/number"] = ticket
			}
			empty := pod.DeepCopy()
			container, initial, ephemeral, volume := pod.DeepCopy(), pod.DeepCopy(), pod.DeepCopy(), pod.DeepCopy()
			container.Spec.Containers = []corev1.Container{{Name: "a", Image: "good:v1"}, {Name: "b", Image: image}}
			initial.Spec.InitContainers = []corev1.Container{{Name: "a", Image: image}}
			ephemeral.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "a", Image: image}}}
			volume.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: image}}}}
			for _, p := range []*corev1.Pod{container, initial, ephemeral, volume, empty} {
				for _, subresource := range []string{"", "ephemeralcontainers", "status", "resize"} {
					all = append(all, onPods(admission.Update, subresource, p, empty))
				}
				all = append(all, onPods(admission.Create, "", p, nil), onPods(admission.Delete, "", nil, p))
			}
			generated := container.DeepCopy()
			generated.Name, generated.GenerateName = "", "shop-"
			all = append(all, onPods(admission.Create, "", generated, nil))
		}
	}
	return all
}

// imageRequest returns a request for a Pod with images that the service knows.
func (g *generator) imageRequest() *request {
	if g.oneIn(6) {
		return g.debugRequest()
	}
	r := g.podRequest()
	for _, object := range []runtime.Object{r.object, r.old} {
		if pod, ok := object.(*corev1.Pod); ok && pod != nil {
			g.reviewable(pod)
		}
	}
	return r
}

// reviewable sets the images of a Pod, and sometimes an annotation for the service.
func (g *generator) reviewable(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = g.reviewed()
	}
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].Image = g.reviewed()
	}
	for i := range pod.Spec.EphemeralContainers {
		pod.Spec.EphemeralContainers[i].Image = g.reviewed()
	}
	if g.oneIn(4) {
		pod.Annotations = maps.Clone(pod.Annotations)
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "ticket.image-policy.k8s.io/number", pick(g, "1", "2"))
	}
}

func (g *generator) reviewed() string {
	if g.IntN(3) > 0 {
		return images[g.IntN(4)] // good
	}
	return pick(g, images...)
}

// debugRequest returns a request that adds an ephemeral container to a Pod.
func (g *generator) debugRequest() *request {
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: pick(g, g.namespaces...).Name}}
	old.Spec.Containers = []corev1.Container{{Name: "app", Image: "good:v1"}}
	pod := old.DeepCopy()
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debug", Image: g.reviewed(), ImagePullPolicy: corev1.PullAlways, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}}}
	return onPods(admission.Update, "ephemeralcontainers", pod, old)
}

// recorded records the audit annotations that an admission controller adds.
type recorded struct {
	admission.Attributes
	annotations map[string]string
}

func (r recorded) AddAnnotation(key, value string) error {
	if err := r.Attributes.AddAnnotation(key, value); err != nil {
		return err
	}
	r.annotations[strings.TrimPrefix(key, originalpolicy.AuditKeyPrefix)] = value
	return nil
}

// TestImageAuditAnnotations compares the audit annotations of each kind of image, without the prefixes of their keys.
func TestImageAuditAnnotations(t *testing.T) {
	c := imageControllers()[0]
	in := newCluster(t, nil, nil)
	for _, content := range c.configurations {
		v := c.variant(t, in, content)
		for _, image := range images {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "plain"}}
			pod.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
			r := onPods(admission.Create, "", pod, nil).encoded(t)
			original := recorded{r.attributes(t), map[string]string{}}
			err := v.plugin.(admission.ValidationInterface).Validate(t.Context(), original, nil)
			decision := webhooktest.Decision(t, v.hooks[0], webhooktest.Request(t, "CREATE", r.kind, "pods", r.object, nil))
			if decision.Allowed != (err == nil) || !maps.Equal(decision.AuditAnnotations, original.annotations) {
				t.Errorf("%s: got %v, the original has %v and %v", image, decision.AuditAnnotations, original.annotations, err)
			}
		}
	}
}
