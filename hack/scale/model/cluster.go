// SPDX-License-Identifier: Apache-2.0

package model

import "time"

// A Cluster describes what the parts of Kubernetes write to the API server.
type Cluster struct {
	Nodes, Pods int
	PodLifetime time.Duration // mean time from the start of a Pod to its end
	// PodStarts is the highest number of Pods that the controllers and the scheduler start per second, as in a rollout. The
	// options --kube-api-qps of the controllers limit it.
	PodStarts float64
}

// Writes is a kind of request to the API server, which calls webhooks whose rules match it.
type Writes struct {
	Resource, Operation string
	Mean, Peak          float64 // requests per second; at the peak, PodStarts Pods start and as many end
}

// Numbers of requests for each Pod, without retries. See the packages of the kubelet and of the controllers.
const (
	statusesOfPod = 4 // accepted by the kubelet, sandbox ready, containers ready, and ended; the binding sets PodScheduled
	deletesOfPod  = 2 // by the controller, and by the kubelet after the grace period
	eventsOfPod   = 5 // scheduled, pulled, created, started, and killed
	slicesOfPod   = 2 // it is added to an EndpointSlice, and removed
)

// Periods of the kubelet: renewIntervalFraction of the lease duration, nodeStatusReportFrequency, and 80 % of the 3607
// seconds for which the token of a Pod is valid.
const (
	leasePeriod      = 10 * time.Second
	nodeStatusPeriod = 5 * time.Minute
	tokenPeriod      = 2886 * time.Second
)

// Writes returns the requests of the kubelets, the scheduler and the controllers for Pods. Status updates of workloads,
// and requests of users and of other controllers come in addition.
func (c Cluster) Writes() []Writes {
	mean := float64(c.Pods) / c.PodLifetime.Seconds()
	ofPods := func(resource, operation string, each float64) Writes {
		return Writes{resource, operation, mean * each, c.PodStarts * each}
	}
	steady := func(resource, operation string, period time.Duration) Writes {
		rate := float64(c.Nodes) / period.Seconds()
		return Writes{resource, operation, rate, rate}
	}
	refreshed := float64(c.Pods) / tokenPeriod.Seconds()
	return []Writes{
		{"serviceaccounts/token", "CREATE", mean + refreshed, c.PodStarts + refreshed},
		ofPods("pods", "CREATE", 1),
		ofPods("pods/binding", "CREATE", 1),
		ofPods("pods/status", "UPDATE", statusesOfPod),
		ofPods("pods", "DELETE", deletesOfPod),
		ofPods("events", "CREATE", eventsOfPod),
		ofPods("endpointslices", "UPDATE", slicesOfPod),
		steady("leases", "UPDATE", leasePeriod),
		steady("nodes/status", "UPDATE", nodeStatusPeriod),
	}
}
