// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"k8s.io/utils/clock"

	"github.com/admitkit/admitkit/examples/gallery/alwayspullimages"
	"github.com/admitkit/admitkit/examples/gallery/defaultingressclass"
	"github.com/admitkit/admitkit/examples/gallery/defaultstorageclass"
	"github.com/admitkit/admitkit/examples/gallery/defaulttolerationseconds"
	"github.com/admitkit/admitkit/examples/gallery/denyescalatingexec"
	"github.com/admitkit/admitkit/examples/gallery/denyserviceexternalips"
	"github.com/admitkit/admitkit/examples/gallery/eventratelimit"
	"github.com/admitkit/admitkit/examples/gallery/imagepolicywebhook"
	"github.com/admitkit/admitkit/examples/gallery/limitpodhardantiaffinitytopology"
	"github.com/admitkit/admitkit/examples/gallery/limitranger"
	"github.com/admitkit/admitkit/examples/gallery/loadbalancerservices"
	"github.com/admitkit/admitkit/examples/gallery/namespaceexists"
	"github.com/admitkit/admitkit/examples/gallery/namespacelifecycle"
	"github.com/admitkit/admitkit/examples/gallery/noderestriction"
	"github.com/admitkit/admitkit/examples/gallery/ownerreferencespermissionenforcement"
	"github.com/admitkit/admitkit/examples/gallery/persistentvolumeclaimresize"
	"github.com/admitkit/admitkit/examples/gallery/podnodeselector"
	"github.com/admitkit/admitkit/examples/gallery/podpreset"
	"github.com/admitkit/admitkit/examples/gallery/podsecurity"
	"github.com/admitkit/admitkit/examples/gallery/podtolerationrestriction"
	"github.com/admitkit/admitkit/examples/gallery/priority"
	"github.com/admitkit/admitkit/examples/gallery/runtimeclass"
	"github.com/admitkit/admitkit/examples/gallery/serviceaccount"
	"github.com/admitkit/admitkit/examples/gallery/sidecarinjection"
	"github.com/admitkit/admitkit/examples/gallery/sources"
	"github.com/admitkit/admitkit/examples/gallery/storageobjectinuseprotection"
	"github.com/admitkit/admitkit/examples/gallery/uniqueingresshosts"
	"github.com/admitkit/admitkit/examples/gallery/workloaddefaults"
	"github.com/admitkit/admitkit/pkg/access"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A policy returns the hooks of an admission controller. The argument file is the path of its configuration file, or
// empty.
type policy func(s *sources.Sources, file string) ([]*webhook.Hook, error)

// policies maps the name of each admission controller to its policy.
var policies = map[string]policy{
	"AlwaysPullImages": unconfigured(func(*sources.Sources) []*webhook.Hook { return alwayspullimages.Hooks() }),
	"DefaultIngressClass": unconfigured(func(s *sources.Sources) []*webhook.Hook {
		return []*webhook.Hook{defaultingressclass.Hook(s.IngressClasses())}
	}),
	"DefaultStorageClass": unconfigured(func(s *sources.Sources) []*webhook.Hook {
		return []*webhook.Hook{defaultstorageclass.Hook(s.StorageClasses())}
	}),
	"DefaultTolerationSeconds": unconfigured(func(*sources.Sources) []*webhook.Hook {
		const seconds = defaulttolerationseconds.DefaultSeconds
		return []*webhook.Hook{defaulttolerationseconds.Hook(seconds, seconds)}
	}),
	"DenyEscalatingExec": reading((*sources.Sources).Pods, one(denyescalatingexec.Hook)),
	"DenyServiceExternalIPs": unconfigured(func(*sources.Sources) []*webhook.Hook {
		return []*webhook.Hook{denyserviceexternalips.Hook()}
	}),
	"EventRateLimit":     eventRateLimit,
	"ImagePolicyWebhook": imagePolicyWebhook,
	"LimitPodHardAntiAffinityTopology": unconfigured(func(*sources.Sources) []*webhook.Hook {
		return []*webhook.Hook{limitpodhardantiaffinitytopology.Hook()}
	}),
	"LimitRanger":     reading((*sources.Sources).LimitRanges, limitranger.Hooks),
	"NamespaceExists": reading((*sources.Sources).Namespaces, one(namespaceexists.Hook)),
	"NamespaceLifecycle": unconfigured(func(*sources.Sources) []*webhook.Hook {
		return []*webhook.Hook{namespacelifecycle.Hook(namespacelifecycle.Protected()...)}
	}),
	"OwnerReferencesPermissionEnforcement": ownerReferences,
	"LoadBalancerServices": unconfigured(func(*sources.Sources) []*webhook.Hook {
		return []*webhook.Hook{loadbalancerservices.Hook()}
	}),
	"PersistentVolumeClaimResize": unconfigured(func(s *sources.Sources) []*webhook.Hook {
		return []*webhook.Hook{persistentvolumeclaimresize.Hook(s.StorageClasses())}
	}),
	"NodeRestriction":          nodeRestriction,
	"PodNodeSelector":          podNodeSelector,
	"PodPreset":                podPreset,
	"PodSecurity":              podSecurity,
	"PodTolerationRestriction": podTolerationRestriction,
	"Priority":                 unconfigured(func(s *sources.Sources) []*webhook.Hook { return priority.Hooks(s.PriorityClasses()) }),
	"RuntimeClass":             reading((*sources.Sources).RuntimeClasses, runtimeclass.Hooks),
	"ServiceAccount":           reading((*sources.Sources).ServiceAccounts, serviceaccount.Hooks),
	"SidecarInjection":         sidecarInjection,
	"StorageObjectInUseProtection": unconfigured(func(*sources.Sources) []*webhook.Hook {
		return []*webhook.Hook{storageobjectinuseprotection.Hook()}
	}),
	"UniqueIngressHosts": uniqueIngressHosts,
	"WorkloadDefaults":   workloadDefaults,
}

var (
	errNoConfiguration    = errors.New("this admission controller has no configuration: remove its --config")
	errNeedsConfiguration = errors.New("this admission controller needs a configuration") // hooks adds the flag
)

// unconfigured returns a policy for hooks without configuration. The policy returns an error if it is given a
// configuration file.
func unconfigured(hooks func(*sources.Sources) []*webhook.Hook) policy {
	return func(s *sources.Sources, file string) ([]*webhook.Hook, error) {
		if file != "" {
			return nil, errNoConfiguration
		}
		return hooks(s), nil
	}
}

// reading returns a policy for hooks without configuration. The hooks read from the source. The policy returns the
// error of the source if that cannot be created.
func reading[T any](source func(*sources.Sources) (T, error), hooks func(T) []*webhook.Hook) policy {
	return func(s *sources.Sources, file string) ([]*webhook.Hook, error) {
		if file != "" {
			return nil, errNoConfiguration
		}
		from, err := source(s)
		if err != nil {
			return nil, err
		}
		return hooks(from), nil
	}
}

// one converts a function that returns a hook to a function that returns a list with this hook.
func one[T any](hook func(T) *webhook.Hook) func(T) []*webhook.Hook {
	return func(from T) []*webhook.Hook { return []*webhook.Hook{hook(from)} }
}

func ownerReferences(s *sources.Sources, file string) ([]*webhook.Hook, error) {
	kinds, err := s.Kinds()
	if err != nil {
		return nil, err
	}
	hook := func(users *access.Authorizer) *webhook.Hook {
		return ownerreferencespermissionenforcement.Hook(users, kinds)
	}
	return reading((*sources.Sources).Users, one(hook))(s, file)
}

func eventRateLimit(_ *sources.Sources, file string) ([]*webhook.Hook, error) {
	if file == "" {
		return nil, errNeedsConfiguration
	}
	config, err := eventratelimit.Load(file)
	if err != nil {
		return nil, err
	}
	return []*webhook.Hook{eventratelimit.Hook(config, clock.RealClock{})}, nil
}

func imagePolicyWebhook(s *sources.Sources, file string) ([]*webhook.Hook, error) {
	if file == "" {
		return nil, errNeedsConfiguration
	}
	config, err := imagepolicywebhook.Load(file)
	if err != nil {
		return nil, err
	}
	hook, err := imagepolicywebhook.Hook(config, s.Metrics())
	return []*webhook.Hook{hook}, err
}

func nodeRestriction(s *sources.Sources, file string) ([]*webhook.Hook, error) {
	if file != "" {
		return nil, errNoConfiguration
	}
	pods, errPods := s.CachedPods()
	nodes, errNodes := s.Nodes()
	access, errAccess := s.Users()
	if err := errors.Join(errPods, errNodes, errAccess); err != nil {
		return nil, err
	}
	return noderestriction.Hooks(noderestriction.Cluster{
		Pods: pods, Nodes: nodes, Access: access,
		Claims: s.PersistentVolumeClaims(), Volumes: s.PersistentVolumes(), Drivers: s.CSIDrivers(),
	}), nil
}

func podNodeSelector(s *sources.Sources, file string) ([]*webhook.Hook, error) {
	config, err := load(file, podnodeselector.Load)
	if err != nil {
		return nil, err
	}
	namespaces, err := s.Namespaces()
	if err != nil {
		return nil, err
	}
	return podnodeselector.Hooks(namespaces, config), nil
}

func podSecurity(s *sources.Sources, file string) ([]*webhook.Hook, error) {
	config, err := podsecurity.Load(file)
	if err != nil {
		return nil, err
	}
	namespaces, err := s.Namespaces()
	if err != nil {
		return nil, err
	}
	return podsecurity.Hooks(namespaces, s.PodsOfNamespaces(), config)
}

func podPreset(_ *sources.Sources, file string) ([]*webhook.Hook, error) {
	if file == "" {
		return nil, errNeedsConfiguration
	}
	presets, err := podpreset.Load(file)
	if err != nil {
		return nil, err
	}
	return []*webhook.Hook{podpreset.Hook(presets)}, nil
}

func sidecarInjection(_ *sources.Sources, file string) ([]*webhook.Hook, error) {
	if file == "" {
		return nil, errNeedsConfiguration
	}
	config, err := sidecarinjection.Load(file)
	if err != nil {
		return nil, err
	}
	return sidecarinjection.Hooks(config), nil
}

func podTolerationRestriction(s *sources.Sources, file string) ([]*webhook.Hook, error) {
	config, err := load(file, podtolerationrestriction.Load)
	if err != nil {
		return nil, err
	}
	namespaces, err := s.Namespaces()
	if err != nil {
		return nil, err
	}
	return podtolerationrestriction.Hooks(namespaces, config), nil
}

func uniqueIngressHosts(s *sources.Sources, file string) ([]*webhook.Hook, error) {
	if file != "" {
		return nil, errNoConfiguration
	}
	ingresses, err := s.Ingresses(uniqueingresshosts.Indexers())
	if err != nil {
		return nil, err
	}
	return []*webhook.Hook{uniqueingresshosts.Hook(ingresses)}, nil
}

func workloadDefaults(s *sources.Sources, file string) ([]*webhook.Hook, error) {
	config, err := workloaddefaults.Load(file)
	if err != nil {
		return nil, err
	}
	namespaces, err := s.Namespaces()
	if err != nil {
		return nil, err
	}
	return []*webhook.Hook{workloaddefaults.Hook(namespaces, config)}, nil
}

// load reads a configuration file. Without a file it returns the zero configuration.
func load[T any](file string, read func(string) (T, error)) (config T, err error) {
	if file == "" {
		return config, nil
	}
	return read(file)
}
