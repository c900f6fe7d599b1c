// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"slices"
	"strings"
)

// conventions are names that follow a domain in the keys of published projects. Each name stands in keys of at least
// two of them:
//
//	inject             sidecar.istio.io/inject, linkerd.io/inject, sidecar.opentelemetry.io/inject
//	enabled            dapr.io/enabled, admission.datadoghq.com/enabled, goldilocks.fairwinds.com/enabled
//	sidecar-injection  kuma.io/sidecar-injection, openservicemesh.io/sidecar-injection
//	injection          pod-identity.alibabacloud.com/injection, sidecar.kroxylicious.io/injection
//	enable             aws.spiffe.csi.cert-manager.io/enable, hajimari.io/enable
//	mode               wallarm.com/mode, addonmanager.kubernetes.io/mode, fluentbit.fluent.io/mode
//	profile            sidecar.wallarm.io/profile, autoscaling.datadoghq.com/profile
//	auto               reloader.stakater.com/auto, pod-reloader.deckhouse.io/auto
//	config             dapr.io/config, proxy.istio.io/config
//	policy             keel.sh/policy, ingress.pomerium.io/policy
//	role               vault.hashicorp.com/role, iam.amazonaws.com/role
//	managed            sealedsecrets.bitnami.com/managed, kubefed.io/managed
//	expose             tailscale.com/expose, fabric8.io/expose, netbird.io/expose
//	scrape             prometheus.io/scrape, k8s.grafana.com/scrape
//	use                azure.workload.identity/use, federid.io/use
//	class              telegraf.influxdata.com/class, dns.gardener.cloud/class
//	group              node.deckhouse.io/group, ray.io/group
//	tier               directpv.min.io/tier, workload.percona.com/tier
var conventions = []string{
	"inject", "enabled", "sidecar-injection", "injection", "enable", "mode", "profile", "auto", "config", "policy", "role", "managed", "expose",
	"scrape", "use", "class", "group", "tier",
}

// GuessedValues are values of published projects that switch a webhook on, the most frequent first: "true" for Istio
// and Dapr, "enabled" for Linkerd and Kuma, "yes" for the injectors of CyberArk and Doppler, "on" for the Pod identity of
// Alibaba Cloud, and other ways to say the same.
var GuessedValues = []string{"true", "enabled", "yes", "on", "1", "inject", "auto"}

// The maximum lengths of the lists from which keys are guessed, and of their result.
const (
	mostDomains     = 12
	mostDomainWords = 12
	mostGuesses     = 1000
)

// AddName adds the domains and the words in the DNS name of a webhook or a Service, from which Guesses makes keys.
func (h *Hints) AddName(name string) {
	labels := strings.Split(name, ".")
	for i := range max(len(labels)-1, 0) {
		h.AddDomain(strings.Join(labels[i:], "."))
	}
	for _, label := range labels[:max(len(labels)-1, 1)] {
		h.AddWords(label)
	}
}

// AddDomain adds a domain, such as the group of a custom resource or the domain of a key that the webhook writes.
func (h *Hints) AddDomain(domain string) {
	switch {
	case !strings.Contains(domain, ".") || !IsKey(domain+"/x"): // a webhook without a configuration has its URL as its name
	case strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io") || strings.HasSuffix(domain, "kb.io"):
		// These are domains of Kubernetes, of its API groups, and of the names that kubebuilder writes.
	default:
		h.domains = appendNew(h.domains, mostDomains, domain)
	}
}

// separators stand between the words of a name.
var separators = lazy(`[^A-Za-z0-9]+`)

// frequent are words in the names of webhooks that say nothing about what a webhook does.
var frequent = []string{
	"webhook", "webhooks", "mutating", "mutate", "mutator", "mutation", "admission", "controller", "operator", "system", "service", "svc", "server",
	"k8s", "kb", "kube", "kubernetes", "cluster", "local", "default", "v1", "the", "of", "to", "and", "in", "for", "by", "on", "with", "no",
}

// AddWords adds the words of a name such as "sidecar-injector" or "/mutate-v1-pod".
func (h *Hints) AddWords(name string) {
	for _, word := range separators().Split(strings.ToLower(name), -1) {
		if len(word) > 1 && !slices.Contains(frequent, word) {
			h.nameWords = appendNew(h.nameWords, mostDomainWords, word)
		}
	}
}

// Merge adds the hints of others.
func (h *Hints) Merge(others *Hints) {
	for _, p := range others.Pairs {
		h.AddPair(p.Key, p.Value)
	}
	for _, key := range others.Keys {
		h.AddKey(key)
	}
	for _, domain := range others.domains {
		h.AddDomain(domain)
	}
	for _, v := range others.Values {
		h.Values = appendNew(h.Values, mostValues, v)
	}
	for _, w := range others.Words {
		h.Words = appendNew(h.Words, mostWords, w)
	}
}

// NameWords returns the words that were added with AddName and AddWords.
func (h *Hints) NameWords() []string { return h.nameWords }

// Guesses returns keys that are usual for the domains and words of the hints, the likeliest first. It forms keys as
// published projects do:
//
//	domain/convention          dapr.io/enabled for the webhook sidecar-injector.dapr.io
//	word.domain/convention     sidecar.istio.io/inject for sidecar-injector.istio.io
//	domain/word-inject         consul.hashicorp.com/connect-inject for consul-connect-injector
//	domain/inject-word         instrumentation.opentelemetry.io/inject-java, kroxylicious.io/inject-sidecar
//	domain/word                prometheus.io/port, kueue.x-k8s.io/queue-name
//	word-injection             istio-injection, opa-istio-injection
//	word.domain/word           proxy.istio.io/config, batch.kubernetes.io/job-name
//	word.io/convention         linkerd.io/inject for the Service linkerd-proxy-injector
func (h *Hints) Guesses() (keys []string) {
	known := map[string]bool{}
	for _, key := range h.Keys {
		known[key] = true
	}
	add := func(key string) {
		if len(keys) < mostGuesses && !known[key] && !IsOff(key) && IsKey(key) {
			known[key], keys = true, append(keys, key)
		}
	}
	words := variants(h.nameWords)
	for _, domain := range h.domains {
		for _, name := range conventions {
			add(domain + "/" + name)
		}
	}
	for _, word := range words {
		for _, domain := range h.domains {
			for _, form := range []string{"", "-inject", "-injection", "-enabled"} {
				add(domain + "/" + word + form)
			}
			add(domain + "/inject-" + word)
		}
		add(word + "-injection")
		add(word + "-inject")
		add(word)
	}
	domains := h.withoutName()
	for _, word := range words {
		for _, domain := range domains {
			for _, name := range conventions {
				add(word + "." + domain + "/" + name)
			}
		}
	}
	for _, word := range words {
		for _, domain := range domains {
			for _, other := range words {
				if other != word {
					add(word + "." + domain + "/" + other)
					add(domain + "/" + word + "-" + other)
				}
			}
		}
	}
	for _, word := range h.nameWords {
		for _, name := range conventions {
			add(word + ".io/" + name)
		}
	}
	return keys
}

// withoutName returns the domains without the names of the webhooks themselves, which a word does not precede.
func (h *Hints) withoutName() (domains []string) {
	for i, domain := range h.domains {
		inner := i+1 < len(h.domains) && strings.HasSuffix(domain, "."+h.domains[i+1])
		if first, _, _ := strings.Cut(domain, "."); !inner || !strings.Contains(first, "-") {
			domains = append(domains, domain)
		}
	}
	return domains
}

// variants returns the words, each with its singular or plural form.
func variants(words []string) []string {
	list := slices.Clone(words)
	for _, word := range words {
		if singular, ok := strings.CutSuffix(word, "s"); ok {
			list = appendNew(list, 2*len(words), singular)
		} else {
			list = appendNew(list, 2*len(words), word+"s")
		}
	}
	return list
}
