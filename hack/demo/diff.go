// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Fields that the API server sets in every Pod and container. The demo does not show them.
var (
	podDefaults = []string{"dnsPolicy", "enableServiceLinks", "preemptionPolicy", "priority", "restartPolicy",
		"schedulerName", "securityContext", "terminationGracePeriodSeconds", "tolerations"}
	containerDefaults = []string{"imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"}
)

// written returns the Pod without the fields that the API server and kubectl add. So it has only what the user
// and the webhooks wrote.
func written(pod map[string]any) map[string]any {
	metadata, spec := child(pod, "metadata"), without(child(pod, "spec"), podDefaults...)
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		containers = slices.Clone(containers)
		for i, c := range containers {
			if c, ok := c.(map[string]any); ok {
				containers[i] = without(c, containerDefaults...)
			}
		}
		if containers != nil {
			spec[list] = containers
		}
	}
	kept := map[string]any{"name": metadata["name"], "namespace": metadata["namespace"], "labels": metadata["labels"]}
	if annotations := without(child(metadata, "annotations"), "kubectl.kubernetes.io/last-applied-configuration"); len(annotations) > 0 {
		kept["annotations"] = annotations
	}
	return map[string]any{"metadata": kept, "spec": spec}
}

func child(m map[string]any, name string) map[string]any {
	c, _ := m[name].(map[string]any)
	return c
}

func without(m map[string]any, names ...string) map[string]any {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(name string, _ any) bool { return slices.Contains(names, name) })
	return m
}

// diffYAML returns the lines of both documents. It puts "+ " before a line that only after has, "- " before a
// line that only before has, and "  " before the others.
func diffYAML(before, after map[string]any) ([]string, error) {
	b, err := yaml.Marshal(before)
	if err != nil {
		return nil, err
	}
	a, err := yaml.Marshal(after)
	if err != nil {
		return nil, err
	}
	return diffLines(strings.Split(strings.TrimSpace(string(b)), "\n"), strings.Split(strings.TrimSpace(string(a)), "\n")), nil
}

// diffLines returns the lines of before and after, merged along a longest common subsequence.
func diffLines(before, after []string) []string {
	// common[i][j] is the length of the longest common subsequence of before[i:] and after[j:].
	common := make([][]int, len(before)+1)
	for i := range common {
		common[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var lines []string
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			lines = append(lines, "  "+before[i])
			i, j = i+1, j+1
		case j == len(after) || i < len(before) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "- "+before[i])
			i++
		default:
			lines = append(lines, "+ "+after[j])
			j++
		}
	}
	return lines
}
