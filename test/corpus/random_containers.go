// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

var containerParts = []maker{envPart, envMapPart, envFromPart, tokenPart, argsPart, imagePart, limitPart, securityPart}

// envName returns the word as the name of a variable.
func (m *partInputs) envName() string { return strings.ToUpper(strings.ReplaceAll(m.word, "-", "_")) }

func envPart(m *partInputs) part {
	name, value := m.envName(), randomWord(m.Rand)
	ensure := m.each(func(c *corev1.Container) {
		ensureEnv(c, name, value)
	})
	has := func(c *corev1.Container) bool { return findEnv(c, name) != nil }
	return part{name: "env", ensure: ensure, bugs: []bug{
		broken("guard removed", m.each(func(c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
		}), "L1"),
		broken("random value", m.each(func(c *corev1.Container) {
			setEnv(c, name, randomHex())
		}), "L1", "L3"),
		broken("value beside valueFrom", m.each(func(c *corev1.Container) {
			if e := findEnv(c, name); e != nil {
				e.Value = value
				return
			}
			ensureEnv(c, name, value)
		}), "L5", "L1"),
		m.early(has, ensure),
		denied(func(p *corev1.Pod) bool {
			return slices.ContainsFunc(m.others(p), has)
		}, ensure),
	}}
}

// envMapPart adds several variables in a fixed order.
func envMapPart(m *partInputs) part {
	names := []string{m.envName() + "_A", m.envName() + "_B", m.envName() + "_C", m.envName() + "_D"}
	values := map[string]string{}
	for _, name := range names {
		values[name] = randomWord(m.Rand)
	}
	return part{
		name: "several env",
		ensure: m.each(func(c *corev1.Container) {
			for _, name := range names {
				ensureEnv(c, name, values[name])
			}
		}),
		bugs: []bug{broken("order of a map", m.each(func(c *corev1.Container) {
			for name, value := range values {
				ensureEnv(c, name, value)
			}
		}), "L3")},
	}
}

func envFromPart(m *partInputs) part {
	source := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: m.word}}}
	has := func(c *corev1.Container) bool {
		return slices.ContainsFunc(c.EnvFrom, func(s corev1.EnvFromSource) bool {
			return s.Prefix == "" && s.ConfigMapRef != nil && s.ConfigMapRef.Name == m.word
		})
	}
	blind := func(c *corev1.Container) { c.EnvFrom = append(c.EnvFrom, *source.DeepCopy()) }
	ensure := m.missing(has, blind)
	return part{name: "envFrom", ensure: ensure, bugs: []bug{broken("guard removed", m.each(blind), "L1"), m.early(has, ensure)}}
}

// tokenPart adds a token to a variable that users and other webhooks also extend.
func tokenPart(m *partInputs) part {
	name, token := m.envName()+"_OPTS", "-"+m.word
	extend := func(c *corev1.Container) error {
		e := findEnv(c, name)
		switch {
		case e == nil:
			ensureEnv(c, name, token)
		case e.ValueFrom != nil:
			return denial(name + " must be a plain value")
		default:
			e.Value = extended(e.Value, token)
		}
		return nil
	}
	has := func(c *corev1.Container) bool {
		e := findEnv(c, name)
		return e != nil && slices.Contains(strings.Fields(e.Value), token)
	}
	ensure := m.tryEach(func(c *corev1.Container) error {
		if has(c) {
			return nil
		}
		return extend(c)
	})
	return part{name: "token", ensure: ensure, bugs: []bug{broken("concatenates", m.tryEach(extend), "L1", "L12"), m.early(has, ensure)}}
}

func argsPart(m *partInputs) part {
	token := "--" + m.word
	has := func(c *corev1.Container) bool { return slices.Contains(c.Args, token) }
	blind := func(c *corev1.Container) { c.Args = append(c.Args, token) }
	ensure := m.missing(has, blind)
	return part{name: "args", ensure: ensure, bugs: []bug{
		broken("guard removed", m.each(blind), "L1"),
		broken("replaces the list", m.missing(has, func(c *corev1.Container) { c.Args = []string{token} }), "L10", "L5"),
		m.early(has, ensure),
	}}
}

func imagePart(m *partInputs) part {
	prefix := m.word + ".example.com/"
	ensure := m.each(func(c *corev1.Container) {
		prefixImage(c, prefix)
	})
	return part{name: "image", ensure: ensure, bugs: []bug{
		broken("guard removed", m.each(func(c *corev1.Container) {
			c.Image = prefix + c.Image
		}), "L1", "L12"),
		m.early(func(c *corev1.Container) bool { return strings.HasPrefix(c.Image, prefix) }, ensure),
	}}
}

func limitPart(m *partInputs) part {
	name := []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU}[m.IntN(2)]
	amount := resource.MustParse(map[corev1.ResourceName]string{corev1.ResourceMemory: "64Mi", corev1.ResourceCPU: "250m"}[name])
	set := func(c *corev1.Container, amount resource.Quantity) {
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Limits[name] = amount.DeepCopy()
	}
	// A limit of a container must not exceed the limit of the whole Pod. Skip Pods with such a limit.
	alone := func(e edit) edit {
		return unless(func(p *corev1.Pod) bool { return p.Spec.Resources != nil }, e)
	}
	return part{
		name: "limit",
		ensure: alone(m.each(func(c *corev1.Container) {
			defaultLimit(c, name, amount)
		})),
		bugs: []bug{
			broken("relative", alone(m.each(func(c *corev1.Container) {
				limit := c.Resources.Limits[name]
				limit.Add(amount)
				set(c, limit)
			})), "L1", "L12"),
			broken("below the request", alone(m.each(func(c *corev1.Container) {
				if _, ok := c.Resources.Limits[name]; !ok {
					set(c, amount)
				}
			})), "L1", "L5"),
			broken("replaces the map", alone(m.each(func(c *corev1.Container) {
				if _, ok := c.Resources.Limits[name]; !ok {
					c.Resources.Limits = nil
					defaultLimit(c, name, amount)
				}
			})), "L10", "L5"),
		},
	}
}

func securityPart(m *partInputs) part {
	secure := func(change func(c *corev1.Container)) edit {
		return unless(isWindows, m.each(change))
	}
	isSet := func(c *corev1.Container) bool {
		return c.SecurityContext != nil && c.SecurityContext.ReadOnlyRootFilesystem != nil
	}
	return part{
		name: "securityContext",
		ensure: secure(func(c *corev1.Container) {
			if !isSet(c) {
				securityOf(c).ReadOnlyRootFilesystem = ptr.To(true)
			}
		}),
		bugs: []bug{
			broken("replaces the context", secure(func(c *corev1.Container) {
				if !isSet(c) {
					c.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true)}
				}
			}), "L10", "L5"),
			broken("toggles", secure(func(c *corev1.Container) {
				value := !isSet(c) || !*c.SecurityContext.ReadOnlyRootFilesystem
				securityOf(c).ReadOnlyRootFilesystem = ptr.To(value)
			}), "L1"),
		},
	}
}
