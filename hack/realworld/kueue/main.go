// SPDX-License-Identifier: Apache-2.0

// Command kueue serves webhooks of Kueue on a loopback address, which it prints.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	queuecache "sigs.k8s.io/kueue/pkg/cache/queue"
	schedulercache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/controller/jobs/deployment"
	"sigs.k8s.io/kueue/pkg/controller/jobs/job"
	"sigs.k8s.io/kueue/pkg/controller/jobs/pod"
	"sigs.k8s.io/kueue/pkg/controller/jobs/statefulset"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

func main() {
	log.Fatal(run())
}

func run() error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kueue.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
		NewClient: func(*rest.Config, client.Options) (client.Client, error) {
			return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{Get: get}).
				WithIndex(&kueue.Workload{}, indexer.WorkloadQueueKey, indexer.IndexWorkloadQueue).Build(), nil
		},
	})
	if err != nil {
		return err
	}
	cache := schedulercache.New(mgr.GetClient())
	queues := queuecache.NewManager(mgr.GetClient(), cache, queuecache.NewRequeuer())
	if err := queues.AddLocalQueue(context.Background(), defaultQueue()); err != nil {
		return err
	}
	for _, setup := range []func(ctrl.Manager, ...jobframework.Option) error{
		pod.SetupWebhook, job.SetupWebhook, deployment.SetupWebhook, statefulset.SetupWebhook,
	} {
		if err := setup(mgr, jobframework.WithQueues(queues), jobframework.WithCache(cache)); err != nil {
			return err
		}
	}
	if failed, err := webhooks.Setup(mgr, nil); err != nil {
		return fmt.Errorf("%s: %w", failed, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mgr.GetWebhookServer().WebhookMux())
}

// get stands for a cluster that has every Namespace.
func get(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, isNamespace := into.(*corev1.Namespace); !isNamespace {
		return c.Get(ctx, key, into, options...)
	}
	into.SetName(key.Name)
	into.SetLabels(map[string]string{"kubernetes.io/metadata.name": key.Name})
	return nil
}

// defaultQueue returns the queue for jobs that name none.
func defaultQueue() *kueue.LocalQueue {
	return &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: "main"},
	}
}
