// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/patch"
	"github.com/admitkit/admitkit/pkg/review"
)

// M12 to M34: webhooks that rely on an assumption that is not always true.

func wrongAssumptionPatterns() []Case {
	return []Case{
		onPods("M12 trusts its annotation", trustsAnnotation).breaks("L4a"),
		onPods("M13 remembers the index of its container", storesIndex).breaks("L4b"),
		onPods("M14 takes its toleration as proof that all is done", trustsToleration).breaks("L5"),
		onPods("M15 recognizes its volume by name only", volumeByNameOnly).breaks("L5"),
		documentCase("M16 appends to a list that may be missing", appendsBlindly).breaks("L10"),
		documentCase("M17 tests a value that it has already replaced", testsDefault(false)).breaks("L10"),
		podCase("M18 writes the whole container", func() http.Handler { return handler(replacesContainer) }).breaks("L9"),
		podCase("M19 searches the raw JSON for text", func() http.Handler { return handler(searchesRawText) }).breaks("L8").samples(podSwitchedOff()),
		podCase("M20 keeps a value of the first object", keepsFirstValue).breaks("L3"),
		podCase("M21 writes a random name chosen at start", instanceName(true)).breaks("L3"),
		onPods("M22 writes the time in seconds", writesSeconds).breaks("L3"),
		onPods("M23 chooses a name in place of the API server", choosesName).breaks("L3"),
		noneOnDryRun(onPods("M24 denies a dry run", func(r *review.Request, p *corev1.Pod) error {
			if r.DryRun {
				return denial("a dry run is not supported")
			}
			return tokenMounted(r, p)
		})).breaks("L7"),
		deploymentCase("M25 changes the selector in an update", typed(selects)).breaks("L6"),
		onPods("M26 sorts the containers", sortsContainers).breaks("L12"),
		onPods("M27 keeps its variable first", envFirst(true)).breaks("L12").advice(),
		onPods("M28 keeps its container last", sidecarLast).breaks("L12"),
		onPods("M29 records the registry of the first call", recordsRegistry(false)).against(imagePrefixedOnce).breaks("L11"),
		onPods("M30 skips Pods in deletion, but not existing Pods", unless(deleted, sidecarIfAbsent)).on(create, update).breaks("L6"),
		onPods("M31 assumes that the first container is its own", assumesFirstContainer).breaks("L4b"),
		onPods("M32 keeps one source per ConfigMap", sourceByName).breaks("L10", "L5"),
		onPods("M33 forbids escalation beside CAP_SYS_ADMIN", mayNotEscalate(false)).breaks("L1"),
		onPods("M34 panics on an invalid port", parsesPort(true)).breaks("L2").samples(podWithPort()),
	}
}

func wrongAssumptionLookalikes() []Case {
	return []Case{
		onPods("M12 looks for its container", func(r *review.Request, p *corev1.Pod) error {
			annotate(p, injected, "injected")
			return sidecarInPlace(r, p)
		}),
		onPods("M13 looks for its container", sidecarInPlace),
		onPods("M14 checks each part by itself", func(r *review.Request, p *corev1.Pod) error {
			setKey(&p.Spec.NodeSelector, "agent", "yes")
			return tolerationOnce(r, p)
		}),
		onPods("M15 recognizes its volume by name and content", tokenMounted),
		documentCase("M17 tests a value only after it found it", testsDefault(true)),
		podCase("M19 reads a decoded field", func() http.Handler {
			return pods(func(_ *review.Request, p *corev1.Pod) error {
				if p.Annotations["agent/mode"] != "off" {
					annotate(p, "agent/ok", "yes")
				}
				return nil
			})
		}).samples(podSwitchedOff()),
		podCase("M20 caches a value by namespace", cachesByNamespace),
		podCase("M21 keeps its random name to itself", instanceName(false)),
		onPods("M23 leaves generateName to the API server", labelled),
		deploymentCase("M25 keeps the selector of the stored Deployment", typed(selectsOnce)),
		onPods("M26 sorts what it adds", sortedOrder),
		onPods("M27 inserts its variable first", envFirst(false)),
		onPods("M28 appends its container", sidecarIfAbsent),
		onPods("M29 records the name of the image", recordsRegistry(true)).against(imagePrefixedOnce),
		onPods("M30 skips existing Pods", unless(deleted, onCreate(sidecarIfAbsent))).on(create, update),
		onPods("M32 adds a source when no equal one exists", ensuredEnvFrom),
		onPods("M33 forbids escalation where the API server permits that", mayNotEscalate(true)),
		onPods("M34 denies an invalid port", parsesPort(false)).samples(podWithPort()),
	}
}

// trustsAnnotation takes its annotation as proof that its container exists. It panics if the container
// was removed.
func trustsAnnotation(r *review.Request, p *corev1.Pod) error {
	if p.Annotations[injected] != "injected" {
		annotate(p, injected, "injected")
		return sidecarIfAbsent(r, p)
	}
	container(p, sidecar().Name).Image = sidecar().Image
	return nil
}

// storesIndex stores the index of its container. After an insertion by another webhook it changes the
// wrong container.
func storesIndex(r *review.Request, p *corev1.Pod) error {
	at, err := strconv.Atoi(p.Annotations["agent/place"])
	if err != nil || at < 0 || at >= len(p.Spec.Containers) {
		if nameTaken(p, sidecar().Name) {
			return nil
		}
		annotate(p, "agent/place", strconv.Itoa(len(p.Spec.Containers)))
		return blindSidecar(r, p)
	}
	p.Spec.Containers[at].Image = sidecar().Image
	return nil
}

// trustsToleration skips Pods with its toleration. A user who sets the same toleration gets no node
// selector.
func trustsToleration(r *review.Request, p *corev1.Pod) error {
	if slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == agentToleration().Key }) {
		return nil
	}
	setKey(&p.Spec.NodeSelector, "agent", "yes")
	return tolerationOnce(r, p)
}

// volumeByNameOnly mounts any volume that has the name of its own volume, even one that the user defined.
func volumeByNameOnly(_ *review.Request, p *corev1.Pod) error {
	if !hasVolume(p, token().Name) {
		addVolume(p, token())
	}
	return mountEverywhere(p, token().Name, "/tok")
}

// appendsBlindly appends to the init containers, even where the list does not exist.
func appendsBlindly(doc map[string]any) patch.Patch {
	if named(doc, "setup") {
		return nil
	}
	return patch.Patch{add("/spec/initContainers/-", setup())}
}

// testsDefault moves Pods from the default scheduler to its own. The patch tests for the default scheduler first. In a
// second call that test fails, unless checks is true.
func testsDefault(checks bool) func(doc map[string]any) patch.Patch {
	usual := json.RawMessage(`"default-scheduler"`)
	return func(doc map[string]any) patch.Patch {
		if name, _ := member[string](doc, "spec", "schedulerName"); checks && name != "default-scheduler" {
			return nil
		}
		return patch.Patch{
			{Op: patch.Test, Path: "/spec/schedulerName", Value: usual},
			add("/spec/schedulerName", ownScheduler),
		}
	}
}

// replacesContainer replaces the first container with the encoding of its Go type, and so loses
// unknown fields.
func replacesContainer(r *review.Request) (patch.Patch, error) {
	var p corev1.Pod
	if err := json.Unmarshal(r.Object, &p); err != nil || len(p.Spec.Containers) == 0 {
		return nil, err
	}
	c := &p.Spec.Containers[0]
	if findEnv(c, "AGENT_ID") != nil {
		return nil, nil
	}
	ensureEnv(c, "AGENT_ID", "7")
	return patch.Patch{{Op: patch.Replace, Path: "/spec/containers/0", Value: add("", c).Value}}, nil
}

// searchesRawText searches the JSON for a text. It does not find a field that is written with other
// white space.
func searchesRawText(r *review.Request) (patch.Patch, error) {
	if bytes.Contains(r.Object, []byte(`"agent/mode":"off"`)) {
		return nil, nil
	}
	return document(addsKey("metadata"))(r)
}

// podSwitchedOff returns a Pod whose annotation switches the webhook off.
func podSwitchedOff() *corev1.Pod {
	return simplePod(map[string]string{"agent/mode": "off"})
}

// keepsFirstValue gives all Pods a hash of the first Pod that the instance received.
func keepsFirstValue() http.Handler {
	var once sync.Once
	var name string
	return pods(func(_ *review.Request, p *corev1.Pod) error {
		once.Do(func() { name = hash(foreign(p)) })
		annotate(p, "agent/template", name)
		return nil
	})
}

// cachesByNamespace caches a value that depends only on the namespace, so the cache changes no
// response.
func cachesByNamespace() http.Handler {
	var known sync.Map
	return pods(func(r *review.Request, p *corev1.Pod) error {
		name, _ := known.LoadOrStore(r.Namespace, hash([]string{r.Namespace}))
		annotate(p, "agent/template", name.(string))
		return nil
	})
}

// instanceName gives each instance a random name. If shown is true, the handler writes the name into Pods, so two
// instances disagree.
func instanceName(shown bool) func() http.Handler {
	return func() http.Handler {
		name := randomHex()
		return pods(func(_ *review.Request, p *corev1.Pod) error {
			if !shown {
				annotate(p, "agent/instance", "one of many")
				return nil
			}
			annotate(p, "agent/instance", name)
			return nil
		})
	}
}

// writesSeconds writes the time in seconds. Only calls in different seconds show that it reads the
// clock.
var writesSeconds = changes(func(p *corev1.Pod) {
	annotate(p, "agent/seen-at", time.Now().UTC().Format(time.RFC3339))
})

// choosesName sets the name to generateName and a random suffix. Equal requests get different names.
var choosesName = changes(func(p *corev1.Pod) {
	if p.Name == "" && p.GenerateName != "" {
		p.Name = p.GenerateName + randomHex()
	}
})

// selects makes the Deployment select by a label that it adds to the Pods. The selector is immutable,
// so this fails in updates.
var selects = changes(func(d *appsv1.Deployment) {
	if d.Spec.Selector == nil {
		return
	}
	setKey(&d.Spec.Selector.MatchLabels, "bugs.example.com/agent", "yes")
	setKey(&d.Spec.Template.Labels, "bugs.example.com/agent", "yes")
})

// selectsOnce adds the label to the selector and the template of new Deployments. In an update, it does so only if the
// selector of the stored Deployment has the label, because selectors are immutable.
func selectsOnce(r *review.Request, d *appsv1.Deployment) error {
	if r.Operation == "CREATE" {
		return selects(r, d)
	}
	var old appsv1.Deployment
	if err := json.Unmarshal(r.OldObject, &old); err != nil {
		return err
	}
	if old.Spec.Selector == nil || old.Spec.Selector.MatchLabels["bugs.example.com/agent"] == "" {
		return nil
	}
	return selects(r, d)
}

// sortsContainers sorts all containers by name. It never agrees with a webhook that needs another
// order.
var sortsContainers = changes(func(p *corev1.Pod) {
	slices.SortStableFunc(p.Spec.Containers, func(a, b corev1.Container) int { return cmp.Compare(a.Name, b.Name) })
})

// envFirst inserts a variable before all others. If keep is true, it moves the variable to the front again in every
// call, so two such webhooks never agree.
func envFirst(keep bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		for _, c := range everyContainer(p) {
			i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "AGENT_FIRST" })
			switch {
			case i < 0:
				c.Env = slices.Insert(c.Env, 0, corev1.EnvVar{Name: "AGENT_FIRST", Value: "yes"})
			case i > 0 && keep:
				e := c.Env[i]
				c.Env = slices.Insert(slices.Delete(c.Env, i, i+1), 0, e)
			}
		}
		return nil
	}
}

// sidecarLast moves its container to the end in every call. It never agrees with a webhook that does
// the same.
func sidecarLast(r *review.Request, p *corev1.Pod) error {
	i := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == sidecar().Name })
	if i < 0 {
		return sidecarIfAbsent(r, p)
	}
	c := p.Spec.Containers[i]
	p.Spec.Containers = append(slices.Delete(p.Spec.Containers, i, i+1), c)
	return nil
}

// assumesFirstContainer inserts its container at the front. In later calls it changes the first
// container, which may be another one.
func assumesFirstContainer(r *review.Request, p *corev1.Pod) error {
	if nameTaken(p, sidecar().Name) {
		if len(p.Spec.Containers) > 0 {
			p.Spec.Containers[0].Image = sidecar().Image
		}
		return nil
	}
	return movesFirst(sidecar())(r, p)
}

// sourceByName keeps only one envFrom source for each ConfigMap or Secret, although a container may use one twice, with
// different prefixes.
var sourceByName = changesContainers(func(c *corev1.Container) {
	c.EnvFrom = byName(append(c.EnvFrom, agentEnvFrom()), func(s corev1.EnvFromSource) string {
		switch {
		case s.ConfigMapRef != nil:
			return "config/" + s.ConfigMapRef.Name
		case s.SecretRef != nil:
			return "secret/" + s.SecretRef.Name
		}
		return ""
	})
})

// recordsRegistry records the registry of each image once. If a rival changes the registry, the result depends on the
// order of the two webhooks. If name is true, it records the rest of the image instead, which the rival keeps.
func recordsRegistry(name bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		for _, c := range everyContainer(p) {
			key := "image.agent/" + c.Name
			if _, ok := p.Annotations[key]; ok {
				continue
			}
			if at := strings.LastIndexByte(c.Image, '/'); name {
				annotate(p, key, c.Image[at+1:])
			} else {
				annotate(p, key, c.Image[:max(at, 0)])
			}
		}
		return nil
	}
}

// mayNotEscalate sets allowPrivilegeEscalation to false. The API server rejects this together with
// CAP_SYS_ADMIN. If look is true, the webhook skips containers with that capability.
func mayNotEscalate(look bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		if isWindows(p) {
			return nil
		}
		for _, c := range appContainers(p) {
			s := securityOf(c)
			privileged := s.Privileged != nil && *s.Privileged
			administers := look && s.Capabilities != nil && slices.Contains(s.Capabilities.Add, "CAP_SYS_ADMIN")
			if s.AllowPrivilegeEscalation == nil && !privileged && !administers {
				s.AllowPrivilegeEscalation = new(false)
			}
		}
		return nil
	}
}

func podWithPort() *corev1.Pod { return simplePod(map[string]string{"agent/port": "9000"}) }

// parsesPort copies a port from an annotation into a variable. It panics on an invalid port if panics
// is true, and denies the Pod otherwise.
func parsesPort(panics bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		text, ok := p.Annotations["agent/port"]
		if !ok {
			return nil
		}
		port, err := strconv.ParseUint(text, 10, 16)
		switch {
		case err != nil && panics:
			panic(err)
		case err != nil:
			return denial("agent/port: " + err.Error())
		}
		for _, c := range appContainers(p) {
			ensureEnv(c, "AGENT_PORT", strconv.FormatUint(port, 10))
		}
		return nil
	}
}
