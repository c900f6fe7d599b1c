// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// webhooks returns the entries of a configuration. The caller may change them.
func webhooks(configuration *unstructured.Unstructured) []map[string]any {
	list, _ := configuration.Object["webhooks"].([]any)
	entries := make([]map[string]any, 0, len(list))
	for _, entry := range list {
		if fields, ok := entry.(map[string]any); ok {
			entries = append(entries, fields)
		}
	}
	return entries
}

func nameOf(webhook map[string]any) string {
	name, _ := webhook["name"].(string)
	return name
}

func failsClosed(webhook map[string]any) bool {
	return webhook["failurePolicy"] == string(admissionregistrationv1.Fail)
}

func clientConfig(webhook map[string]any) map[string]any {
	c, _ := webhook["clientConfig"].(map[string]any)
	return c
}

func bundleOf(webhook map[string]any) string {
	bundle, _ := clientConfig(webhook)["caBundle"].(string)
	return bundle
}

// serverOf returns the Service or URL at which a webhook is called, without the path.
func serverOf(webhook map[string]any) string {
	c := clientConfig(webhook)
	if text, ok := c["url"].(string); ok {
		u, err := url.Parse(text)
		if err != nil {
			return text
		}
		return u.Host
	}
	service, _ := c["service"].(map[string]any)
	return fmt.Sprintf("%v/%v:%v", service["namespace"], service["name"], service["port"])
}
