// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// A node acts as the kubelet of a Node. It renews its Lease, and reports the Pods that are bound to it: as Running and
// Ready, or as Succeeded if a Job owns them. It removes Pods that are deleted. Only Pods whose image is the path of a
// program run one (see program).
type node struct {
	name     string
	programs map[types.UID]*program
	stop     context.CancelFunc
	running  context.Context // ends when the node is stopped
	ended    chan struct{}   // closed when run has ended
	err      error           // result of run; set before ended is closed
}

// startNode registers a Node that is ready, until it is stopped or the specs of the container end.
func startNode(ctx context.Context, name string) *node {
	GinkgoHelper()
	n := &node{name: name, programs: map[types.UID]*program{}, ended: make(chan struct{})}
	capacity := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("200")}
	created, err := clients.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // it starts again
		created, err = clients.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
	created.Status = corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}}
	_, err = clients.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	n.running, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(n.ended)
		n.err = n.run(n.running)
	}()
	DeferCleanup(func(ctx context.Context) {
		n.stop()
		n.wait()
		Expect(n.err).To(Or(BeNil(), MatchError(context.Canceled)))
		Expect(ignoreGone(clients.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}))).To(Succeed())
	})
	return n
}

// wait waits until the node and its programs have ended after stop.
func (n *node) wait() {
	<-n.ended
	for _, p := range n.programs {
		<-p.ended
	}
}

// renewEvery is the interval at which a kubelet renews its Lease.
const renewEvery = 10 * time.Second

func (n *node) run(ctx context.Context) error {
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	if err := n.renewLease(ctx); err != nil {
		return err
	}
	list, err := clients.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name})
	if err != nil {
		return err
	}
	for i := range list.Items { // those that it ran before it was stopped
		if err := n.report(ctx, &list.Items[i]); err != nil {
			return err
		}
	}
	changes, err := clients.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-renew.C:
			err = n.renewLease(ctx)
		case e, open := <-changes.ResultChan():
			if !open {
				return fmt.Errorf("the watch of the Pods of %s ended", n.name)
			}
			if pod, is := e.Object.(*corev1.Pod); is && e.Type != watch.Deleted {
				err = n.report(ctx, pod)
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (n *node) renewLease(ctx context.Context) error {
	leases := clients.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, n.name, metav1.GetOptions{})
	now := metav1.NowMicro()
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &now}}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// report reports what happened to a Pod. It leaves a Pod that it has reported before.
func (n *node) report(ctx context.Context, pod *corev1.Pod) error {
	pods := clients.CoreV1().Pods(pod.Namespace)
	if p := n.programs[pod.UID]; p != nil || isProgram(pod) {
		if p == nil && pod.DeletionTimestamp == nil {
			n.programs[pod.UID] = startProgram(n.running, pod)
		} else if p != nil && pod.DeletionTimestamp != nil {
			p.terminate()
		}
		return nil
	}
	if pod.DeletionTimestamp != nil {
		err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		return ignoreGone(err)
	}
	if pod.Status.Phase != corev1.PodPending {
		return nil
	}
	pod = pod.DeepCopy()
	pod.Status.Phase, pod.Status.PodIP, pod.Status.StartTime = corev1.PodRunning, newPodIP(), ptr.To(metav1.Now())
	ready := corev1.ConditionTrue
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" {
		pod.Status.Phase, ready = corev1.PodSucceeded, corev1.ConditionFalse
	}
	setReady(pod, ready)
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return ignoreGone(err)
}

// setReady sets the conditions Ready and ContainersReady.
func setReady(pod *corev1.Pod, ready corev1.ConditionStatus) {
	for _, condition := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == condition })
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: ready, LastTransitionTime: metav1.Now()})
	}
}

// podIPs counts the addresses of Pods.
var podIPs atomic.Int32

func newPodIP() string {
	n := podIPs.Add(1)
	return fmt.Sprintf("10.244.%d.%d", n/250, n%250+1)
}

// ignoreGone returns nil for the error about an object that was deleted, or changed meanwhile so that another event
// follows.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || isConflict(err) {
		return nil
	}
	return err
}

func isConflict(err error) bool { return apierrors.IsConflict(err) }
