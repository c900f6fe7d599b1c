// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admitkit/admitkit/pkg/review"
)

// T01 to T15: webhooks that read or write a text with structure, such as a list in an annotation.

const ownItem = "agent"

func textPatterns() []Case {
	return []Case{
		onPods("T01 does not expect blanks after commas", listsItself("agent.io/sidecars", untrimmed)).breaks("L4a", "L4b", "L5"),
		onPods("T02 looks for its option at the end", optionAtEnd).breaks("L4a", "L4b"),
		onPods("T03 searches a JSON text for its element", networkByText).breaks("L4a", "L4b", "L5"),
		onPods("T04 decodes a JSON text into its own type", networksOfType).breaks("L5").samples(simplePod(map[string]string{networksKey: `{"networks":[{"name":"data"}],"mode":"fast"}`})),
		onPods("T05 takes a longer item for its own", listsItself("agent.io/sidecars", strings.Contains)).breaks("L5"),
		onPods("T06 compares quantities as text", heapRaised(func(a, b string) bool { return a == b })).breaks("L4a").samples(heapPod()),
		onPods("T07 rebuilds the list from its first call", listRebuilt).breaks("L4b"),
		onPods("T08 looks for its feature at the end of a flag", featureFlag(strings.HasSuffix)).breaks("L4a", "L4b"),
		onPods("T09 makes volumes from untrimmed items", volumesListed).breaks("L1").samples(simplePod(map[string]string{"agent.io/scratch": "cache,logs"})),
		onKind("T10 looks for its line at the end of a file", "v1", "configmaps", configLine(strings.HasSuffix)).breaks("L4a", "L4b"),
	}
}

func textLookalikes() []Case {
	return []Case{
		onPods("T01 trims items", listsItself("agent.io/sidecars", hasItem)),
		onPods("T02 looks for its option among all", optionOnceInList),
		onPods("T03 decodes a JSON text", networkByName),
		onPods("T06 compares quantities by value", heapRaised(sameQuantity)).samples(heapPod()),
		onPods("T08 looks for its feature among all", featureFlag(hasItem)),
		onKind("T10 looks for its line", "v1", "configmaps", configLine(hasLine)),
		onPods("T11 overwrites its own list", changes(func(p *corev1.Pod) { annotate(p, "agent.io/sidecars", "agent,shipper") })),
		onPods("T12 sets a list only where there is none", changes(func(p *corev1.Pod) {
			if p.Annotations["agent.io/sidecars"] == "" {
				annotate(p, "agent.io/sidecars", "agent,shipper")
			}
		})),
		onPods("T13 sorts a list in lower case", sortedList),
		onPods("T14 moves its item to the front", itemFirst),
		onPods("T15 overwrites its status", changes(func(p *corev1.Pod) { annotate(p, "agent.io/status", `{"version":"v1","containers":["agent"]}`) })),
	}
}

// listsItself appends its item to a list in an annotation, unless has finds the item in the list.
func listsItself(key string, has func(list, item string) bool) edit {
	return changes(func(p *corev1.Pod) {
		switch list := p.Annotations[key]; {
		case strings.TrimSpace(list) == "":
			annotate(p, key, ownItem)
		case !has(list, ownItem):
			annotate(p, key, list+","+ownItem)
		}
	})
}

func untrimmed(list, item string) bool { return slices.Contains(strings.Split(list, ","), item) }

// itemsOf returns the items of a list with commas, without blanks.
func itemsOf(list string) (items []string) {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func hasItem(list, item string) bool { return slices.Contains(itemsOf(list), item) }

// optionAtEnd appends its option to a variable that does not end with it. After another party has appended something,
// it appends its option again.
var optionAtEnd = changesAppContainers(func(c *corev1.Container) {
	switch e := findEnv(c, "JAVA_TOOL_OPTIONS"); {
	case e == nil:
		ensureEnv(c, "JAVA_TOOL_OPTIONS", "-javaagent:/agent.jar")
	case e.ValueFrom == nil && !strings.HasSuffix(e.Value, "-javaagent:/agent.jar"):
		e.Value = extended(e.Value, "-javaagent:/agent.jar")
	}
})

// optionOnceInList appends its option to a variable that does not have it. It skips references.
var optionOnceInList = changesContainers(func(c *corev1.Container) {
	switch e := findEnv(c, "JAVA_TOOL_OPTIONS"); {
	case e == nil:
		ensureEnv(c, "JAVA_TOOL_OPTIONS", "-javaagent:/agent.jar")
	case e.ValueFrom == nil && !slices.Contains(strings.Fields(e.Value), "-javaagent:/agent.jar"):
		e.Value = extended(e.Value, "-javaagent:/agent.jar")
	}
})

const networksKey = "agent.io/networks"

// networkByText appends its network to a JSON list, unless the text contains the network exactly as the webhook writes
// it.
func networkByText(_ *review.Request, p *corev1.Pod) error {
	text := p.Annotations[networksKey]
	if strings.Contains(text, `"name":"agent-net"`) {
		return nil
	}
	return appendNetwork(p, text, false)
}

// networkByName appends its network to a JSON list that lacks it.
func networkByName(_ *review.Request, p *corev1.Pod) error {
	return appendNetwork(p, p.Annotations[networksKey], true)
}

func appendNetwork(p *corev1.Pod, text string, once bool) error {
	var list []map[string]any
	if text != "" && json.Unmarshal([]byte(text), &list) != nil {
		return denial("the networks are not a list")
	}
	if once && slices.ContainsFunc(list, func(n map[string]any) bool { return n["name"] == "agent-net" }) {
		return nil
	}
	raw, err := json.Marshal(append(list, map[string]any{"name": "agent-net"}))
	annotate(p, networksKey, string(raw))
	return err
}

// networksOfType appends its network to a document that it decodes into a type. Members that the type lacks are lost.
func networksOfType(_ *review.Request, p *corev1.Pod) error {
	var config struct {
		Networks []map[string]any `json:"networks"`
		Mode     string           `json:"mode,omitempty"`
	}
	if text := p.Annotations[networksKey]; text != "" && json.Unmarshal([]byte(text), &config) != nil {
		return denial("the networks cannot be read")
	}
	if slices.ContainsFunc(config.Networks, func(n map[string]any) bool { return n["name"] == "agent-net" }) {
		return nil
	}
	config.Networks = append(config.Networks, map[string]any{"name": "agent-net"})
	raw, err := json.Marshal(config)
	annotate(p, networksKey, string(raw))
	return err
}

func heapPod() *corev1.Pod { return simplePod(map[string]string{"agent.io/heap": "512Mi"}) }

// heapRaised adds an overhead to the heap size in an annotation, unless the size is the same as the one that it
// recorded in an earlier call.
func heapRaised(same func(a, b string) bool) edit {
	return changes(func(p *corev1.Pod) {
		heap, err := resource.ParseQuantity(p.Annotations["agent.io/heap"])
		if err != nil || heap.Sign() <= 0 || same(p.Annotations["agent.io/heap"], p.Annotations["agent.io/heap-raised"]) {
			return
		}
		heap.Add(overhead)
		annotate(p, "agent.io/heap", heap.String())
		annotate(p, "agent.io/heap-raised", heap.String())
	})
}

func sameQuantity(a, b string) bool {
	x, err := resource.ParseQuantity(a)
	y, err2 := resource.ParseQuantity(b)
	return err == nil && err2 == nil && x.Cmp(y) == 0
}

// listRebuilt records the user's list in its first call, and computes the list from that in each call.
var listRebuilt = changes(func(p *corev1.Pod) {
	original, recorded := p.Annotations["agent.io/sidecars-before"]
	if !recorded {
		original = p.Annotations["agent.io/sidecars"]
		annotate(p, "agent.io/sidecars-before", original)
	}
	annotate(p, "agent.io/sidecars", strings.TrimPrefix(original+","+ownItem, ","))
})

// featureFlag adds its feature to a flag of the first container.
func featureFlag(has func(list, item string) bool) edit {
	return changesAppContainers(func(c *corev1.Container) {
		for i, arg := range c.Args {
			if list, ok := strings.CutPrefix(arg, "--features="); ok {
				if !has(list, ownItem) {
					c.Args[i] = "--features=" + strings.TrimPrefix(list+","+ownItem, ",")
				}
				return
			}
		}
		c.Args = append(c.Args, "--features="+ownItem)
	})
}

// volumesListed adds an emptyDir for each item of a list, also if the item has blanks around it.
var volumesListed = changes(func(p *corev1.Pod) {
	for item := range strings.SplitSeq(p.Annotations["agent.io/scratch"], ",") {
		if name := "scratch-" + item; strings.TrimSpace(item) != "" && !hasVolume(p, name) {
			addVolume(p, emptyDir(name))
		}
	}
})

// configLine adds its line to the file agent.conf of a ConfigMap.
func configLine(has func(file, line string) bool) func(*review.Request, *corev1.ConfigMap) error {
	return changes(func(m *corev1.ConfigMap) {
		file := m.Data["agent.conf"]
		if _, binary := m.BinaryData["agent.conf"]; binary || m.Immutable != nil && *m.Immutable || has(file, "agent=on\n") {
			return
		}
		if file != "" && !strings.HasSuffix(file, "\n") {
			file += "\n"
		}
		setKey(&m.Data, "agent.conf", file+"agent=on\n")
	})
}

func hasLine(file, line string) bool {
	return slices.ContainsFunc(strings.Split(file, "\n"), func(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(line) })
}

// sortedList adds its item to a list, writes the items in lower case, sorts them and removes duplicates.
var sortedList = changes(func(p *corev1.Pod) {
	items := append(itemsOf(strings.ToLower(p.Annotations["agent.io/sidecars"])), ownItem)
	slices.Sort(items)
	annotate(p, "agent.io/sidecars", strings.Join(slices.Compact(items), ","))
})

// itemFirst moves its item to the front of a list.
var itemFirst = changes(func(p *corev1.Pod) {
	items := slices.DeleteFunc(itemsOf(p.Annotations["agent.io/sidecars"]), func(item string) bool { return item == ownItem })
	annotate(p, "agent.io/sidecars", strings.Join(slices.Insert(items, 0, ownItem), ","))
})
