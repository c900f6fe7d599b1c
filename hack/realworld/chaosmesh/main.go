// SPDX-License-Identifier: Apache-2.0

// Command chaosmesh serves the webhooks of Chaos Mesh on a loopback address, which it prints.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/chaos-mesh/chaos-mesh/api/v1alpha1"
	"github.com/chaos-mesh/chaos-mesh/controllers/types"
	"go.uber.org/fx"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// An object is a kind with webhooks.
type object interface {
	runtime.Object
	webhook.CustomDefaulter
	webhook.CustomValidator
}

// parameters are the kinds that the project's program serves.
type parameters struct {
	fx.In
	Objs        []types.Object        `group:"objs"`
	WebhookObjs []types.WebhookObject `group:"webhookObjs"`
}

func main() {
	log.Fatal(run())
}

func run() error {
	objects := []object{&v1alpha1.Schedule{}, &v1alpha1.Workflow{}}
	app := fx.New(fx.NopLogger, types.ChaosObjects, types.WebhookObjects, fx.Invoke(func(all parameters) {
		for _, o := range all.Objs {
			objects = append(objects, o.Object)
		}
		for _, o := range all.WebhookObjs {
			objects = append(objects, o.Object)
		}
	}))
	if err := app.Start(context.Background()); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := ctrl.NewWebhookManagedBy(mgr).For(o).WithValidator(o).WithDefaulter(o).Complete(); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return http.Serve(listener, mgr.GetWebhookServer().WebhookMux())
}
