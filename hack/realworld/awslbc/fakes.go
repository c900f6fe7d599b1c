// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	elbv2sdk "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbv2types "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	elbv2api "sigs.k8s.io/aws-load-balancer-controller/apis/elbv2/v1beta1"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/aws/services"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// get stands for a cluster that has every Namespace, with the labels that enable the webhooks.
func get(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, isNamespace := into.(*corev1.Namespace); !isNamespace {
		return c.Get(ctx, key, into, options...)
	}
	into.SetName(key.Name)
	into.SetLabels(map[string]string{
		"elbv2.k8s.aws/alb-target-control-agent-injection": "enabled",
		"elbv2.k8s.aws/pod-readiness-gate-inject":          "enabled",
		"elbv2.k8s.aws/quic-server-id-inject":              "enabled",
	})
	return nil
}

// objects returns a Service with its target group, and the configuration of the agent from the project's guide.
func objects() []client.Object {
	ip := elbv2api.TargetTypeIP
	return []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "service-2048", Namespace: "default"},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app.kubernetes.io/name": "app-2048"},
				Ports:    []corev1.ServicePort{{Port: 80}},
			},
		},
		&elbv2api.TargetGroupBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "k8s-default-service2-1f2e3d4c5b", Namespace: "default"},
			Spec: elbv2api.TargetGroupBindingSpec{
				TargetType: &ip,
				ServiceRef: elbv2api.ServiceReference{Name: "service-2048", Port: intstr.FromInt32(80)},
			},
		},
		&elbv2api.ALBTargetControlConfig{
			ObjectMeta: metav1.ObjectMeta{
				Name: "aws-load-balancer-controller-alb-target-control-agent-config", Namespace: "kube-system",
			},
			Spec: elbv2api.ALBTargetControlConfigSpec{
				Image:              "public.ecr.aws/aws-elb/target-optimizer/target-control-agent:latest",
				DestinationAddress: "127.0.0.1:8080",
				MaxConcurrency:     1,
				ControlAddress:     "0.0.0.0:3000",
				DataAddress:        "0.0.0.0:80",
				Resources: &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
					},
					Limits: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
					},
				},
			},
		},
	}
}

// cloud stands for an account that has each target group that is asked for.
type cloud struct {
	services.ELBV2 // no other call of the webhooks reaches AWS
}

func (c cloud) AssumeRole(context.Context, string, string) (services.ELBV2, error) {
	return c, nil
}

func (cloud) DescribeTargetGroupsAsList(_ context.Context, in *elbv2sdk.DescribeTargetGroupsInput) ([]elbv2types.TargetGroup, error) {
	var all []elbv2types.TargetGroup
	for _, arn := range in.TargetGroupArns {
		all = append(all, targetGroup(arn))
	}
	for _, name := range in.Names {
		all = append(all, targetGroup(fmt.Sprintf("arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/%s/6a4ecf7bfae473c1", name)))
	}
	return all, nil
}

func targetGroup(arn string) elbv2types.TargetGroup {
	return elbv2types.TargetGroup{
		TargetGroupArn: aws.String(arn),
		TargetType:     elbv2types.TargetTypeEnumIp,
		IpAddressType:  elbv2types.TargetGroupIpAddressTypeEnumIpv4,
		Protocol:       elbv2types.ProtocolEnumHttp,
		VpcId:          aws.String("vpc-0123456789abcdef0"),
	}
}
