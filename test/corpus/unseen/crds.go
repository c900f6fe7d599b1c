// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// The custom resources of the samples.

var (
	topicsOnWrite     = hook(webhook.OnWrite("data.example.com", "v1", "topics"))
	gatewaysOnWrite   = hook(webhook.OnWrite("net.example.com", "v1", "gateways"))
	streamJobsOnWrite = hook(webhook.OnWrite("streams.example.com", "v1", "streamjobs"))
)

// streamJobWorkload gives the path of the Pod template in a StreamJob.
var streamJobWorkload = webhook.Workload{
	Kind:     metav1.GroupVersionKind{Group: "streams.example.com", Version: "v1", Kind: "StreamJob"},
	Resource: "streamjobs",
	Path:     "spec.template",
}

// topicCRD has optional maps and lists, one of them nullable, and scalars without defaults.
const topicCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: topics.data.example.com}
spec:
  group: data.example.com
  scope: Namespaced
  names: {kind: Topic, listKind: TopicList, plural: topics, singular: topic}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            required: [cluster]
            properties:
              cluster: {type: string, minLength: 1}
              partitions: {type: integer, format: int32}
              retention: {type: string}
              cleanupPolicy: {type: string}
              paused: {type: boolean}
              config: {type: object, nullable: true, additionalProperties: {type: string}}
              owners: {type: array, items: {type: string}}
              tls:
                type: object
                properties:
                  minVersion: {type: string}
                  ciphers: {type: array, items: {type: string}}
`

// gatewayCRD has lists with a key.
const gatewayCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gateways.net.example.com}
spec:
  group: net.example.com
  scope: Namespaced
  names: {kind: Gateway, listKind: GatewayList, plural: gateways, singular: gateway}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            properties:
              class: {type: string}
              endpoints:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    id: {type: string}
                    address: {type: string}
                    port: {type: integer, minimum: 1, maximum: 65535}
`

// streamJobCRD embeds a Pod template. Like many generated definitions, it describes only few fields of the template.
const streamJobCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: streamjobs.streams.example.com}
spec:
  group: streams.example.com
  scope: Namespaced
  names: {kind: StreamJob, listKind: StreamJobList, plural: streamjobs, singular: streamjob}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            required: [template]
            properties:
              parallelism: {type: integer, minimum: 1}
              savepoint: {type: string}
              template:
                type: object
                properties:
                  metadata:
                    type: object
                    properties:
                      labels: {type: object, additionalProperties: {type: string}}
                      annotations: {type: object, additionalProperties: {type: string}}
                  spec:
                    type: object
                    x-kubernetes-preserve-unknown-fields: true
                    required: [containers]
                    properties:
                      containers:
                        type: array
                        minItems: 1
                        x-kubernetes-list-type: map
                        x-kubernetes-list-map-keys: [name]
                        items:
                          type: object
                          x-kubernetes-preserve-unknown-fields: true
                          required: [name]
                          properties:
                            name: {type: string}
                            image: {type: string}
                            command: {type: array, items: {type: string}}
                            args: {type: array, items: {type: string}}
`
