// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// podErrors returns an error for each way in which the Pod violates a limit for containers or for Pods.
func podErrors(limit corev1.LimitRangeItem, spec *corev1.PodSpec) (errs []error) {
	switch limit.Type {
	case corev1.LimitTypeContainer:
		for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
			errs = append(errs, violations(limit, c.Resources)...)
		}
	case corev1.LimitTypePod:
		errs = violations(limit, corev1.ResourceRequirements{
			Requests: total(spec, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }),
			Limits:   total(spec, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }),
		})
	}
	return errs
}

// violations returns an error for each bound of limit that the requests and limits violate.
func violations(limit corev1.LimitRangeItem, has corev1.ResourceRequirements) (errs []error) {
	for _, check := range []struct {
		bounds corev1.ResourceList
		fails  func(bound, corev1.ResourceRequirements) error
	}{{limit.Min, bound.min}, {limit.Max, bound.max}, {limit.MaxLimitRequestRatio, bound.ratio}} {
		for _, b := range boundsOf(limit.Type, check.bounds) {
			if err := check.fails(b, has); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// claimErrors returns an error for each bound of a limit for claims that the claim violates. Only its requests are
// checked.
func claimErrors(limit corev1.LimitRangeItem, spec *corev1.PersistentVolumeClaimSpec) (errs []error) {
	if limit.Type != corev1.LimitTypePersistentVolumeClaim {
		return nil
	}
	requests := spec.Resources.Requests
	for _, b := range boundsOf(limit.Type, limit.Min) {
		if err := b.min(corev1.ResourceRequirements{Requests: requests}); err != nil {
			errs = append(errs, err)
		}
	}
	for _, b := range boundsOf(limit.Type, limit.Max) {
		if err := b.maxRequest(requests); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// A bound is the minimum, the maximum or the ratio that a LimitRange sets for one resource.
type bound struct {
	of       corev1.LimitType
	resource corev1.ResourceName
	quantity resource.Quantity
}

// boundsOf returns the bounds in the list, in the order of their resources.
func boundsOf(of corev1.LimitType, list corev1.ResourceList) (bounds []bound) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		bounds = append(bounds, bound{of, name, list[name]})
	}
	return bounds
}

func (b bound) min(has corev1.ResourceRequirements) error {
	request, requested := has.Requests[b.resource]
	limit, limited := has.Limits[b.resource]
	r, l, least := values(request, limit, b.quantity)
	rule := fmt.Sprintf("minimum %s usage per %s is %s", b.resource, b.of, b.quantity.String())
	switch {
	case !requested:
		return fmt.Errorf("%s.  No request is specified", rule)
	case r < least:
		return fmt.Errorf("%s, but request is %s", rule, request.String())
	case limited && l < least:
		return fmt.Errorf("%s, but limit is %s", rule, limit.String())
	}
	return nil
}

func (b bound) max(has corev1.ResourceRequirements) error {
	request, requested := has.Requests[b.resource]
	limit, limited := has.Limits[b.resource]
	r, l, most := values(request, limit, b.quantity)
	rule := fmt.Sprintf("maximum %s usage per %s is %s", b.resource, b.of, b.quantity.String())
	switch {
	case !limited:
		return fmt.Errorf("%s.  No limit is specified", rule)
	case l > most:
		return fmt.Errorf("%s, but limit is %s", rule, limit.String())
	case requested && r > most:
		return fmt.Errorf("%s, but request is %s", rule, request.String())
	}
	return nil
}

// maxRequest is max for a claim, whose limits are not checked.
func (b bound) maxRequest(requests corev1.ResourceList) error {
	request, requested := requests[b.resource]
	r, _, most := values(request, resource.Quantity{}, b.quantity)
	rule := fmt.Sprintf("maximum %s usage per %s is %s", b.resource, b.of, b.quantity.String())
	switch {
	case !requested:
		return fmt.Errorf("%s.  No request is specified", rule)
	case r > most:
		return fmt.Errorf("%s, but request is %s", rule, request.String())
	}
	return nil
}

// ratio checks that the limit divided by the request is not above the bound.
func (b bound) ratio(has corev1.ResourceRequirements) error {
	request, limit := has.Requests[b.resource], has.Limits[b.resource]
	r, l, _ := values(request, limit, b.quantity)
	rule := fmt.Sprintf("%s max limit to request ratio per %s is %s", b.resource, b.of, b.quantity.String())
	switch {
	case r == 0:
		return fmt.Errorf("%s, but no request is specified or request is 0", rule)
	case l == 0:
		return fmt.Errorf("%s, but no limit is specified or limit is 0", rule)
	}
	ratio, most, unit := float64(l)/float64(r), float64(b.quantity.Value()), 1.0
	if b.quantity.Value() <= resource.MaxMilliValue {
		most, unit = float64(b.quantity.MilliValue()), 1000
	}
	if ratio*unit > most {
		return fmt.Errorf("%s, but provided ratio is %f", rule, ratio)
	}
	return nil
}

// values returns the quantities as integers: in thousandths if all of them fit, or else rounded up.
func values(a, b, c resource.Quantity) (int64, int64, int64) {
	if max(a.Value(), b.Value(), c.Value()) > resource.MaxMilliValue {
		return a.Value(), b.Value(), c.Value()
	}
	return a.MilliValue(), b.MilliValue(), c.MilliValue()
}

// total returns the requests or the limits of the whole Pod: of selects the list. Init containers run one after the
// other, beside the sidecars that have started before. CPU and memory of the Pod itself (spec.resources) replace the
// sums. The order of additions is that of the original, because the first quantity decides in which unit a sum is
// printed.
func total(spec *corev1.PodSpec, of func(corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	sum, sidecars, start := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for _, c := range spec.Containers {
		add(sum, of(c.Resources))
	}
	for _, c := range spec.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			add(sum, of(c.Resources))
			add(sidecars, of(c.Resources))
			raise(start, sidecars)
			continue
		}
		running := corev1.ResourceList{}
		add(running, of(c.Resources))
		add(running, sidecars)
		raise(start, running)
	}
	raise(sum, start)
	if spec.Resources != nil {
		for name, quantity := range of(*spec.Resources) {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				sum[name] = quantity
			}
		}
	}
	return sum
}

// add adds the quantities to the sums.
func add(sums, quantities corev1.ResourceList) {
	for name, quantity := range quantities {
		sum := sums[name].DeepCopy()
		sum.Add(quantity)
		sums[name] = sum
	}
}

// raise raises each quantity of the list to that of to, and adds those that are missing.
func raise(list, to corev1.ResourceList) {
	for name, quantity := range to {
		if has, ok := list[name]; !ok || quantity.Cmp(has) > 0 {
			list[name] = quantity
		}
	}
}
