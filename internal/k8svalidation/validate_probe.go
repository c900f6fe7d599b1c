// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// serving checks probes and lifecycle handlers, which only regular containers and sidecars may
// have.
func (p *containerCheck) serving() {
	at, c := p.path, p.container
	if c.Lifecycle != nil {
		p.lifecycle(at.Child("lifecycle"), c.Lifecycle)
	}
	for _, probe := range [...]struct {
		child string
		*corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		if probe.Probe == nil {
			continue
		}
		p.probe(at.Child(probe.child), probe.Probe)
		ready := probe.Probe == c.ReadinessProbe
		if !ready && probe.SuccessThreshold > 1 {
			p.invalid(at.Child(probe.child).Child("successThreshold"), probe.SuccessThreshold, "must be 1")
		}
		if ready && probe.TerminationGracePeriodSeconds != nil {
			p.invalid(at.Child(probe.child).Child("terminationGracePeriodSeconds"), *probe.TerminationGracePeriodSeconds, "must not be set for readinessProbes")
		}
	}
}

// notServing rejects probes and lifecycle handlers in other containers.
func (p *containerCheck) notServing(why string) {
	at, c := p.path, p.container
	for _, part := range [...]struct {
		child string
		set   bool
	}{
		{"lifecycle", c.Lifecycle != nil}, {"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil},
	} {
		if part.set {
			p.forbidden(at.Child(part.child), why)
		}
	}
}

func (p *containerCheck) probe(at *field.Path, probe *corev1.Probe) {
	p.handler(at, &corev1.LifecycleHandler{Exec: probe.Exec, HTTPGet: probe.HTTPGet, TCPSocket: probe.TCPSocket}, probe.GRPC)
	p.notNegative(at, "initialDelaySeconds", int64(probe.InitialDelaySeconds))
	p.notNegative(at, "timeoutSeconds", int64(probe.TimeoutSeconds))
	p.notNegative(at, "periodSeconds", int64(probe.PeriodSeconds))
	p.notNegative(at, "successThreshold", int64(probe.SuccessThreshold))
	p.notNegative(at, "failureThreshold", int64(probe.FailureThreshold))
	if grace := probe.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
		p.invalid(at.Child("terminationGracePeriodSeconds"), *grace, "must be greater than 0")
	}
}

func (p *containerCheck) lifecycle(at *field.Path, l *corev1.Lifecycle) {
	if l.PostStart != nil {
		p.handler(at.Child("postStart"), l.PostStart, nil)
	}
	if l.PreStop != nil {
		p.handler(at.Child("preStop"), l.PreStop, nil)
	}
	if l.StopSignal != nil && p.spec.OS == nil {
		p.forbidden(at.Child("stopSignal"), "may not be set for containers with empty `spec.os.name`")
	}
}

// handler checks that exactly one handler is set and that it is valid. It does not validate a
// second one.
func (p *containerCheck) handler(at *field.Path, h *corev1.LifecycleHandler, grpc *corev1.GRPCAction) {
	n := 0
	first := func(child string, set bool) bool {
		if !set {
			return false
		}
		n++
		if n > 1 {
			p.forbidden(at.Child(child), "may not specify more than 1 handler type")
		}
		return n == 1
	}
	if first("exec", h.Exec != nil) && len(h.Exec.Command) == 0 {
		p.required(at.Child("exec", "command"), "")
	}
	if first("httpGet", h.HTTPGet != nil) {
		p.httpGet(at.Child("httpGet"), h.HTTPGet)
	}
	if first("tcpSocket", h.TCPSocket != nil) {
		p.port(at.Child("tcpSocket", "port"), h.TCPSocket.Port)
	}
	if first("grpc", grpc != nil) {
		p.portNumber(at.Child("grpc"), "port", grpc.Port)
	}
	if first("sleep", h.Sleep != nil) {
		p.sleep(at.Child("sleep"), h.Sleep.Seconds)
	}
	if n == 0 {
		p.required(at, "must specify a handler type")
	}
}

func (p *containerCheck) httpGet(at *field.Path, get *corev1.HTTPGetAction) {
	p.port(at.Child("port"), get.Port)
	enum(p.checker, at, "scheme", get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	for _, header := range get.HTTPHeaders {
		if bad := validation.IsHTTPHeaderName(header.Name); bad != nil {
			p.invalid(at.Child("httpHeaders"), header.Name, bad...)
		}
	}
}

func (c *checker) port(at *field.Path, port intstr.IntOrString) {
	switch {
	case port.Type == intstr.String:
		c.invalid(at, port.StrVal, validation.IsValidPortName(port.StrVal)...)
	case port.IntVal < 1 || port.IntVal > 65535:
		c.invalid(at, port.IntVal, validation.InclusiveRangeError(1, 65535))
	}
}

func (p *containerCheck) sleep(at *field.Path, seconds int64) {
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if p.spec.TerminationGracePeriodSeconds != nil {
		grace = *p.spec.TerminationGracePeriodSeconds
	}
	if p.isPod && grace < 0 {
		grace = 1
	}
	if seconds < 0 || seconds > grace {
		p.invalid(at, seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace))
	}
}
