// SPDX-License-Identifier: Apache-2.0

package generate

// A size has quantities of one resource: low ones for requests, and high ones for limits.
type size struct{ low, high []any }

// In plainSizes and oddSizes, no low quantity exceeds a high one. oddSizes uses unusual notations. In JSON, a quantity
// can be a number or a string.
var plainSizes = map[string]size{
	"cpu":               {low: []any{"100m", "250m"}, high: []any{"500m", "1", "2"}},
	"memory":            {low: []any{"64Mi", "128Mi"}, high: []any{"256Mi", "1Gi"}},
	"ephemeral-storage": {low: []any{"1Gi"}, high: []any{"2Gi"}},
}

var oddSizes = map[string]size{
	"cpu":               {low: []any{"0.1", "1000m", int64(1), 0.5, "1e-1", "0"}, high: []any{"1e3", "1.5", "2000m", int64(3)}},
	"memory":            {low: []any{"1e6", "65536k", "128974848", "0.1Gi", int64(1048576), "0"}, high: []any{"1.5Gi", "1073741824000m", "2E9", "1Ti", "+4Gi"}},
	"ephemeral-storage": {low: []any{"0.5Gi"}, high: []any{"1e10"}},
}

func (b *build) resources(c object, limits, requests bool, from map[string]size) bool {
	r := child(c, "resources")
	if r == nil || r["limits"] != nil || r["requests"] != nil {
		return false
	}
	name := pick(b, "cpu", "memory", "ephemeral-storage", "both")
	for _, resource := range []string{"cpu", "memory", "ephemeral-storage"} {
		if name != resource && (name != "both" || resource == "ephemeral-storage") {
			continue
		}
		s := from[resource]
		if limits {
			child(r, "limits")[resource] = pick(b, s.high...)
		}
		if requests {
			child(r, "requests")[resource] = pick(b, s.low...)
		}
	}
	return true
}

func resources(limits, requests bool, from map[string]size) func(*scope) bool {
	return inSome(func(s *scope, c object) bool {
		// If the Pod has pod-level resources, its containers must fit into them.
		return s.spec["resources"] == nil && s.resources(c, limits, requests, from)
	})
}

// device adds an extended resource: a whole number with equal request and limit.
func device(s *scope, c object) bool {
	r := child(c, "resources")
	if r == nil {
		return false
	}
	limits := child(r, "limits")
	if !put(limits, "example.com/gpu", pick[any](s.build, "1", int64(2))) {
		return false
	}
	if r["requests"] != nil || s.chance(0.3) {
		child(r, "requests")["example.com/gpu"] = limits["example.com/gpu"]
	}
	return true
}
