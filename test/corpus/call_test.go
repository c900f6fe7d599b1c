// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	webhookrequest "k8s.io/apiserver/pkg/admission/plugin/webhook/request"
)

// An object is the decoded JSON of a Kubernetes object.
type object = map[string]any

// A call is one request as the API server sends it.
type call struct {
	version   string // v1 if empty
	operation string // CREATE if empty
	dryRun    bool
	object    object
	old       object
}

type result struct {
	object  object
	patch   []byte
	allowed bool
}

func request(c call) []byte {
	version, operation := c.version, c.operation
	if version == "" {
		version = "v1"
	}
	if operation == "" {
		operation = "CREATE"
	}
	kind, _ := c.object["kind"].(string)
	resource := map[string]string{"Pod": "pods", "Deployment": "deployments", "Widget": "widgets"}[kind]
	group, v, found := strings.Cut(fmt.Sprint(c.object["apiVersion"]), "/")
	if !found {
		group, v = "", group
	}
	name, _ := member[string](c.object, "metadata", "name")
	body, err := json.Marshal(object{
		"apiVersion": "admission.k8s.io/" + version, "kind": "AdmissionReview",
		"request": object{
			"uid":      "f0b6a2a5",
			"kind":     object{"group": group, "version": v, "kind": kind},
			"resource": object{"group": group, "version": v, "resource": resource},
			"name":     name, "namespace": "shop", "operation": operation, "userInfo": object{},
			"object": c.object, "oldObject": c.old, "dryRun": c.dryRun,
		},
	})
	if err != nil {
		panic(err)
	}
	return body
}

// do makes a call. It returns an error where the API server would report that the call failed.
func do(h http.Handler, c call) (result, error) {
	sent := request(c)
	req := httptest.NewRequest(http.MethodPost, "/?timeout=10s", bytes.NewReader(sent))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		return result{}, fmt.Errorf("HTTP %d: %s", w.Code, w.Body)
	}
	var review runtime.Object = new(admissionv1.AdmissionReview)
	if c.version == "v1beta1" {
		review = new(admissionv1beta1.AdmissionReview)
	}
	if err := json.Unmarshal(w.Body.Bytes(), review); err != nil {
		return result{}, err
	}
	if gvk := review.GetObjectKind().GroupVersionKind(); gvk.Version != versionOf(c) || gvk.Kind != "AdmissionReview" {
		return result{}, fmt.Errorf("the request has version %s, the response %v", versionOf(c), gvk)
	}
	answer, err := webhookrequest.VerifyAdmissionResponse("f0b6a2a5", true, review)
	if err != nil {
		return result{}, err
	}
	r := result{object: c.object, patch: answer.Patch, allowed: answer.Allowed}
	if len(answer.Patch) > 0 {
		r.object, err = applied(c.object, answer.Patch)
	}
	return r, err
}

func versionOf(c call) string {
	if c.version == "" {
		return "v1"
	}
	return c.version
}

func applied(doc object, raw []byte) (object, error) {
	before, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	p, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, err
	}
	after, err := p.Apply(before)
	if err != nil {
		return nil, fmt.Errorf("%s does not apply: %w", raw, err)
	}
	var out object
	return out, json.Unmarshal(after, &out)
}

// created makes a call that must be allowed, and returns the patched object.
func created(h http.Handler, doc object) (object, error) {
	r, err := do(h, call{object: doc})
	if err == nil && !r.allowed {
		err = errDenied
	}
	return r.object, err
}

var errDenied = errors.New("denied")

// twice checks laws L1 and L2 with two calls. A denial of the first call is not an error.
func twice(h http.Handler, doc object) error {
	one, err := do(h, call{object: doc})
	if err != nil || !one.allowed {
		return err
	}
	two, err := do(h, call{object: one.object})
	switch {
	case err != nil:
		return err
	case !two.allowed:
		return errors.New("the second call denies the output of the first")
	case len(two.patch) > 0:
		return fmt.Errorf("the second call returns the patch %s", two.patch)
	}
	return invalid(one.object)
}

// invalid returns an error for an object that the API server would reject. It checks only those rules that a webhook of
// the corpus can break.
func invalid(doc object) error {
	if doc["kind"] == "Widget" {
		return repeated("name", objectsAt(doc, "spec", "steps"), objectsAt(doc, "spec", "stores"))
	}
	p := podOf(doc)
	volumes := objectsAt(p, "spec", "volumes")
	containers := append(objectsAt(p, "spec", "initContainers"), objectsAt(p, "spec", "containers")...)
	if err := repeated("name", volumes, containers); err != nil {
		return err
	}
	names := map[any]bool{}
	for _, v := range volumes {
		name, _ := v["name"].(string)
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("%q is not a valid name for a volume", name)
		}
		names[name] = true
	}
	for _, c := range containers {
		mounts := objectsAt(c, "volumeMounts")
		if err := repeated("mountPath", mounts); err != nil {
			return err
		}
		for _, m := range mounts {
			if !names[m["name"]] {
				return fmt.Errorf("there is no volume %v for a mount", m["name"])
			}
		}
		if err := aboveLimit(c); err != nil {
			return err
		}
		for _, e := range objectsAt(c, "env") {
			if value, _ := e["value"].(string); value != "" && e["valueFrom"] != nil {
				return fmt.Errorf("the variable %v has value and valueFrom", e["name"])
			}
		}
	}
	return nil
}

func aboveLimit(c object) error {
	limits, _ := member[object](c, "resources", "limits")
	requests, _ := member[object](c, "resources", "requests")
	for name, request := range requests {
		limit, ok := limits[name].(string)
		if !ok {
			continue
		}
		if want := resource.MustParse(request.(string)); want.Cmp(resource.MustParse(limit)) > 0 {
			return fmt.Errorf("the request of %s is above its limit", name)
		}
	}
	return nil
}

func repeated(key string, lists ...[]object) error {
	for _, list := range lists {
		seen := map[any]bool{}
		for _, e := range list {
			if seen[e[key]] {
				return fmt.Errorf("two elements have the %s %v", key, e[key])
			}
			seen[e[key]] = true
		}
	}
	return nil
}

// podOf returns the Pod template of doc, or doc itself if it is a Pod.
func podOf(doc object) object {
	if template, ok := member[object](doc, "spec", "template"); ok {
		return template
	}
	return doc
}

func parse(text string) object {
	var doc object
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	return doc
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func clone(doc object) object { return parse(text(doc)) }

// same reports whether a and b are equal except for the order of list elements.
func same(a, b any) bool { return reflect.DeepEqual(sorted(a), sorted(b)) }

func sorted(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for name, value := range v {
			out[name] = sorted(value)
		}
		return out
	case []any:
		counts := map[string]int{}
		for _, e := range v {
			counts[text(sorted(e))]++
		}
		return counts
	}
	return v
}

// lost returns the path of a value that is in before but not in after, or "".
func lost(before, after any, at string) string {
	switch before := before.(type) {
	case object:
		others, _ := after.(object)
		for name, value := range before {
			if _, ok := others[name]; !ok {
				return at + "/" + name
			}
			if gone := lost(value, others[name], at+"/"+name); gone != "" {
				return gone
			}
		}
	case []any:
		others, _ := after.([]any)
		for i, e := range before {
			if count(before, e) > count(others, e) {
				return fmt.Sprintf("%s/%d", at, i)
			}
			if other := find(others, e); other != nil {
				if gone := lost(e, other, fmt.Sprintf("%s/%d", at, i)); gone != "" {
					return gone
				}
			}
		}
	}
	return ""
}

// identity returns the identity of a list element, such as its name, as text.
func identity(e any) string {
	o, ok := e.(object)
	if !ok {
		return text(e)
	}
	id := object{}
	for _, key := range []string{"name", "key", "effect", "containerPort", "protocol", "mountPath"} {
		id[key] = o[key]
	}
	return text(id)
}

func count(list []any, e any) (n int) {
	for _, other := range list {
		if identity(other) == identity(e) {
			n++
		}
	}
	return n
}

func find(list []any, e any) any {
	for _, other := range list {
		if identity(other) == identity(e) {
			return other
		}
	}
	return nil
}
