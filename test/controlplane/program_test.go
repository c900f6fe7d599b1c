// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A program is the process of a Pod with one container, whose image is the path of the program. It listens on loopback
// on a port of its own. In its arguments, $(LISTEN) is the address, $(PORT) the port, and $(KUBECONFIG) its kubeconfig
// file. Connections to the address of the Pod reach it. It has the rights of the Pod's ServiceAccount.
type program struct {
	pod    *corev1.Pod
	listen string
	end    context.CancelFunc // asks it to stop
	ended  chan struct{}      // closed when it has stopped
}

func isProgram(pod *corev1.Pod) bool { return filepath.IsAbs(pod.Spec.Containers[0].Image) }

// startProgram runs the program of a Pod, again whenever it ends, until terminate is called. When the node ends, the
// process is killed.
func startProgram(node context.Context, pod *corev1.Pod) *program {
	ctx, end := context.WithCancel(node)
	p := &program{pod: pod, end: end, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer GinkgoRecover()
		if err := p.run(ctx, node); err != nil && node.Err() == nil {
			Fail(fmt.Sprintf("Pod %s: %v", pod.Name, err))
		}
	}()
	return p
}

// terminate stops the program as a kubelet does for a Pod that is deleted: with SIGTERM.
func (p *program) terminate() { p.end() }

func (p *program) run(ctx, node context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.listen = listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	kubeconfig, err := cluster.ServiceAccount(ctx, p.pod.Namespace, p.pod.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	address := newPodIP()
	network.connect(address, p.listen)
	defer network.disconnect(address)
	for restarts := int32(0); ctx.Err() == nil; restarts++ {
		process := p.command(node, kubeconfig)
		if err := process.Start(); err != nil {
			return err
		}
		exited := make(chan struct{})
		go func() {
			_ = process.Wait() // it is started again however it ended
			close(exited)
		}()
		if err := p.watch(ctx, address, restarts, process, exited); err != nil {
			return err
		}
	}
	if node.Err() != nil { // a kubelet that is gone reports nothing
		return nil
	}
	err = clients.CoreV1().Pods(p.pod.Namespace).Delete(node, p.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(p.pod.UID))})
	return ignoreGone(err)
}

// command returns the command of the container. It is killed when the node ends.
func (p *program) command(node context.Context, kubeconfig string) *exec.Cmd {
	c := p.pod.Spec.Containers[0]
	_, port, _ := strings.Cut(p.listen, ":")
	own := strings.NewReplacer("$(LISTEN)", p.listen, "$(PORT)", port, "$(KUBECONFIG)", kubeconfig)
	var args []string
	for _, a := range c.Args {
		args = append(args, own.Replace(a))
	}
	cmd := exec.CommandContext(node, c.Image, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAME="+p.pod.Name, "POD_NAMESPACE="+p.pod.Namespace)
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.Stdout, cmd.Stderr = GinkgoWriter, GinkgoWriter
	return cmd
}

// watch reports the state of the process until it has ended. When ctx ends, it asks the process to stop.
func (p *program) watch(ctx context.Context, address string, restarts int32, process *exec.Cmd, exited <-chan struct{}) error {
	probe := time.NewTicker(250 * time.Millisecond)
	defer probe.Stop()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // a kubelet does not verify certificates either
	reported := corev1.ConditionUnknown
	for {
		select {
		case <-exited:
			return p.report(ctx, address, restarts+1, corev1.ConditionFalse)
		case <-ctx.Done():
			_ = process.Process.Signal(syscall.SIGTERM) // fails if it has ended
			<-exited
			return nil
		case <-probe.C:
		}
		ready := corev1.ConditionFalse
		if c := p.pod.Spec.Containers[0].ReadinessProbe; c == nil || succeeds(client, "https://"+p.listen+c.HTTPGet.Path) {
			ready = corev1.ConditionTrue
		}
		if ready == reported {
			continue
		}
		if err := p.report(ctx, address, restarts, ready); err != nil {
			return err
		}
		reported = ready
	}
}

func succeeds(client *http.Client, url string) bool {
	response, err := client.Get(url)
	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// report sets the status of the Pod.
func (p *program) report(ctx context.Context, address string, restarts int32, ready corev1.ConditionStatus) error {
	pods := clients.CoreV1().Pods(p.pod.Namespace)
	for {
		pod, err := pods.Get(ctx, p.pod.Name, metav1.GetOptions{})
		if err != nil {
			return ignoreGone(ignoreEnd(ctx, err))
		}
		pod.Status.Phase, pod.Status.PodIP, pod.Status.StartTime = corev1.PodRunning, address, ptr.To(metav1.Now())
		pod.Status.PodIPs = []corev1.PodIP{{IP: address}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, Ready: ready == corev1.ConditionTrue, RestartCount: restarts, Image: pod.Spec.Containers[0].Image,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
		setReady(pod, ready)
		if _, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); !isConflict(err) {
			return ignoreGone(ignoreEnd(ctx, err))
		}
	}
}

// ignoreEnd returns nil for an error that occurs because ctx has ended.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
