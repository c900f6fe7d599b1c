// SPDX-License-Identifier: Apache-2.0

package texts

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Equal returns at most three other texts with the same meaning.
func (f Format) Equal(text string) (out []string) {
	switch f {
	case JSON:
		return otherJSON(text)
	case YAML:
		return otherYAML(text)
	case Quantity:
		return otherQuantities(text)
	case Duration:
		return otherDurations(text)
	case Image:
		return otherImages(text)
	case Networks:
		return otherNetworks(text)
	}
	items, s := f.Items(text), string(f.kind())
	if len(items) > 1 {
		switch s {
		case ",", ";", "|":
			out = append(out, strings.Join(items, s+" "), strings.Join(items, " "+s))
		case " ":
			out = append(out, strings.Join(items, "  "))
		}
	}
	if f.Flag() == "" && (s == "\n" || s == " ") && len(items) > 0 {
		if trimmed := strings.TrimRight(text, "\n"); trimmed == text {
			out = append(out, text+"\n")
		} else {
			out = append(out, trimmed)
		}
	}
	return out
}

// otherJSON returns two other forms of a document: one with indentation, and one with the members in reverse order and
// a blank after each colon and comma.
func otherJSON(text string) (out []string) {
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(text), "", "  ") == nil && indented.String() != text {
		out = append(out, indented.String()+"\n")
	}
	if doc, ok := JSON.parse(text); ok {
		if other := backwards(doc); other != text {
			out = append(out, other)
		}
	}
	return out
}

// backwards encodes a document with the members of each object in reverse order.
func backwards(doc any) string {
	var parts []string
	switch doc := doc.(type) {
	case map[string]any:
		for name, value := range doc {
			parts = append(parts, string(tree.Encode(name))+": "+backwards(value))
		}
		slices.Sort(parts)
		slices.Reverse(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, value := range doc {
			parts = append(parts, backwards(value))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return string(tree.Encode(doc))
}

func otherYAML(text string) (out []string) {
	doc, ok := YAML.parse(text)
	if !ok {
		return nil
	}
	if sorted, err := yaml.JSONToYAML(tree.Encode(doc)); err == nil && string(sorted) != text {
		out = append(out, string(sorted))
	}
	return append(out, backwards(doc)+"\n")
}

var (
	quantity = lazy(`^[0-9.]+(Ki|Mi|Gi|Ti|Pi|m|k|M|G|T|P)$`)
	duration = lazy(`^([0-9.]+(h|m|s|ms))+$`)
	// namedDuration and namedAmount match names of fields and variables. The name decides whether a text such as 5m is
	// a duration or a quantity.
	namedDuration = lazy(`(?i)(timeout|interval|period|duration|ttl|delay|grace|deadline|expir|backoff|wait)`)
	namedAmount   = lazy(`(?i)(cpu|memory|storage|size|limit|request|capacity|disk|heap)`)
	reference     = lazy(`^([a-z0-9]+([._-][a-z0-9]+)*)(:[0-9]+)?(/[a-z0-9._-]+)*(:[A-Za-z0-9._-]+)?(@sha256:[0-9a-f]{64})?$`)
)

// Scalar returns the format of a text that is one value: a quantity, a duration or the reference of an image. It
// returns false for any other text. name is the name of the field, variable or annotation.
func Scalar(name, text string) (Format, bool) {
	isQuantity, isDuration := quantity().MatchString(text), duration().MatchString(text)
	if isQuantity && isDuration {
		isDuration = namedDuration().MatchString(name)
		isQuantity = !isDuration && namedAmount().MatchString(name)
	}
	switch {
	case name == "image" && reference().MatchString(text):
		return Image, true
	case isQuantity:
		return Quantity, len(otherQuantities(text)) > 0
	case isDuration:
		return Duration, len(otherDurations(text)) > 0
	}
	return "", false
}

var smaller = map[string]string{"Gi": "Mi", "Mi": "Ki", "Ti": "Gi", "G": "M", "M": "k", "T": "G"}

func otherQuantities(text string) (out []string) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	if canonical := q.String(); canonical != text {
		out = append(out, canonical)
	}
	unit := strings.TrimLeft(text, "0123456789.")
	n, err := strconv.Atoi(strings.TrimSuffix(text, unit))
	if below, ok := smaller[unit]; ok && err == nil && n < 1<<20 {
		factor := 1000
		if strings.HasSuffix(unit, "i") {
			factor = 1024
		}
		out = append(out, strconv.Itoa(n*factor)+below)
	}
	if unit == "m" && err == nil {
		out = append(out, strconv.FormatFloat(float64(n)/1000, 'f', -1, 64))
	}
	return out
}

func otherDurations(text string) (out []string) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil
	}
	if seconds := strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"; seconds != text {
		out = append(out, seconds)
	}
	if canonical := d.String(); canonical != text {
		out = append(out, canonical)
	}
	return out
}

func otherImages(text string) (out []string) {
	first, rest, found := strings.Cut(text, "/")
	switch {
	case !found:
		out = append(out, "docker.io/library/"+text)
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		out = append(out, "docker.io/"+text)
	case first == "docker.io":
		out = append(out, strings.TrimPrefix(rest, "library/"))
	}
	if name := text[strings.LastIndex(text, "/")+1:]; !strings.ContainsAny(name, ":@") {
		out = append(out, text+":latest")
	}
	return out
}

// NetworksAnnotation names the networks of a Pod, either in a list such as "ns/name@interface, name", or in JSON
// (Network Custom Resource Definition De-facto Standard, section 4.1).
const NetworksAnnotation = "k8s.v1.cni.cncf.io/networks"

// otherNetworks writes a list of networks in JSON.
func otherNetworks(text string) []string {
	if isJSON := strings.ContainsAny(text, "[{"); isJSON || text == "" {
		return nil
	}
	return []string{string(tree.Encode(networksOf(text)))}
}

// networksOf returns the networks in both forms of the annotation, or nil if the text has neither form.
func networksOf(text string) any {
	if doc, isJSON := JSON.parse(text); isJSON {
		return doc
	} else if strings.ContainsAny(text, "[{") {
		return nil
	}
	var networks []any
	for _, item := range Format(",").Items(text) {
		network := map[string]any{}
		item, device, hasDevice := strings.Cut(item, "@")
		namespace, name, hasNamespace := strings.Cut(item, "/")
		if network["name"] = namespace; hasNamespace {
			network["namespace"], network["name"] = namespace, name
		}
		if hasDevice {
			network["interface"] = device
		}
		networks = append(networks, network)
	}
	return networks
}

// Same reports whether two quantities, durations, image references or lists of networks have the same meaning. Other
// texts must be equal.
func (f Format) Same(a, b string) bool {
	switch f {
	case Quantity:
		x, err := resource.ParseQuantity(a)
		y, err2 := resource.ParseQuantity(b)
		return err == nil && err2 == nil && x.Cmp(y) == 0
	case Duration:
		x, err := time.ParseDuration(a)
		y, err2 := time.ParseDuration(b)
		return err == nil && err2 == nil && x == y
	case Image:
		return fullImage(a) == fullImage(b)
	case Networks:
		return tree.Equal(networksOf(a), networksOf(b))
	}
	return a == b
}

func fullImage(text string) string {
	if first, _, found := strings.Cut(text, "/"); !found {
		text = "docker.io/library/" + text
	} else if !strings.ContainsAny(first, ".:") && first != "localhost" {
		text = "docker.io/" + text
	}
	if name := text[strings.LastIndex(text, "/")+1:]; !strings.ContainsAny(name, ":@") {
		text += ":latest"
	}
	return text
}

// lazy compiles an expression when it is first used, so that programs that link the harness start quickly.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
