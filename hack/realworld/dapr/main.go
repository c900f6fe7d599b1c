// SPDX-License-Identifier: Apache-2.0

// Command dapr serves Dapr's sidecar injector on a loopback address, which it prints.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"

	dapr "github.com/dapr/dapr/pkg/client/clientset/versioned"
	"github.com/dapr/dapr/pkg/healthz"
	"github.com/dapr/dapr/pkg/injector/service"
	"github.com/dapr/kit/logger"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// environment has the variables that the Helm chart sets by default, with an image of our own.
var environment = map[string]string{
	"SIDECAR_IMAGE": "registry.example.com/daprd:1", "SIDECAR_IMAGE_PULL_POLICY": "IfNotPresent",
	"NAMESPACE": "dapr-system", "KUBE_CLUSTER_DOMAIN": "cluster.local",
	"SIDECAR_RUN_AS_NON_ROOT": "true", "SIDECAR_READ_ONLY_ROOT_FILESYSTEM": "true", "SIDECAR_DROP_ALL_CAPABILITIES": "false",
}

func main() {
	log.Fatal(run())
}

// run starts the injector, which serves TLS on a port of its own, and a proxy without TLS in front of it.
func run() error {
	cluster := &rest.Config{Transport: cluster{}, QPS: -1} // Dapr lifts the limit, too
	kubeClient, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return err
	}
	daprClient, err := dapr.NewForConfig(cluster)
	if err != nil {
		return err
	}
	for name, value := range environment {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	quiet := logger.DefaultOptions()
	quiet.OutputLevel = "fatal" // it logs to standard output, where the address goes
	if err := logger.ApplyOptionsToLoggers(&quiet); err != nil {
		return err
	}
	config, err := service.GetConfig()
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	injector, err := service.NewInjector(service.Options{
		Port: port, Config: config, KubeClient: kubeClient, DaprClient: daprClient, Healthz: healthz.New(),
		ControlPlaneNamespace: "dapr-system", ControlPlaneTrustDomain: "cluster.local",
	})
	if err != nil {
		return err
	}
	certified := httptest.NewTLSServer(nil) // only for its certificate
	certified.Close()
	failed := make(chan error, 1)
	go func() {
		sentry := spiffeid.RequireFromString("spiffe://cluster.local/ns/dapr-system/dapr-sentry")
		anchors := func(context.Context) ([]byte, error) { return []byte("trust anchors"), nil }
		failed <- injector.Run(context.Background(), certified.TLS, sentry, anchors)
	}()
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if err := await(address, failed); err != nil {
		return err
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: address})
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // it is this program
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, proxy)
}

// freePort returns a port that was free a moment ago: the injector accepts only a number.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// await returns when the injector accepts connections.
func await(address string, failed <-chan error) error {
	for range 100 {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			return connection.Close()
		}
		select {
		case err := <-failed:
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("the injector does not accept connections")
}

// cluster stands for the API server. It has only the scheduler of Dapr.
type cluster struct{}

func (cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	if strings.HasSuffix(r.URL.Path, "/statefulsets/dapr-scheduler-server") {
		status, body = http.StatusOK, `{"kind":"StatefulSet","apiVersion":"apps/v1","spec":{"replicas":1}}`
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}
