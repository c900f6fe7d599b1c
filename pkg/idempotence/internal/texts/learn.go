// SPDX-License-Identifier: Apache-2.0

package texts

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Document returns JSON or YAML if a text is such a document with at least one member or element, and otherwise false.
func Document(text string) (Format, bool) {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if doc, ok := JSON.parse(text); ok && tree.Size(doc) > 1 {
			return JSON, true
		}
	}
	if strings.Contains(trimmed, ": ") || strings.HasPrefix(trimmed, "- ") || strings.HasSuffix(trimmed, ":") {
		doc, ok := YAML.parse(text)
		if _, isText := doc.(string); ok && !isText && tree.Size(doc) > 1 {
			return YAML, true
		}
	}
	return "", false
}

// Grown returns the format of a text to which a webhook has added items: after has all items of before, and more. It
// returns false if there is no such format.
func Grown(before, after string) (Format, bool) {
	if f, ok := Document(before); ok {
		grown := f.Lost(f.Items(before), after) == "" && len(f.Items(after)) > len(f.Items(before))
		return f, grown
	}
	if strings.TrimSpace(before) == "" {
		return "", false
	}
	for _, s := range slices.Concat(separators, []string{string(Query)}) {
		f := Format(s)
		if f == Query && !strings.Contains(before, "://") {
			continue
		}
		if items := f.Items(after); f.Lost(f.Items(before), after) == "" && len(items) > len(f.Items(before)) {
			return f, true
		}
	}
	return "", false
}

var (
	number  = lazy(`^[0-9]+$`)
	pair    = lazy(`^[A-Za-z0-9./_-]+=`)
	colon   = lazy(`^[A-Za-z0-9._-]+:[^/]`)
	upper   = lazy(`^[A-Z][A-Z0-9_]+$`)
	host    = lazy(`^\.?[a-z0-9-]+(\.[a-z0-9-]+)+$`)
	image   = lazy(`^[a-z0-9.:-]+(/[a-z0-9._-]+)+[:@]`)
	keyword = lazy(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)
)

// Token returns an item for another party that has the form of the item like: a flag, a path, a number or a name, for
// example. Each n gives another item.
func Token(like string, n int) string {
	name := "rival"
	if n > 0 {
		name += strconv.Itoa(n)
	}
	switch _, notCIDR := netip.ParsePrefix(like); {
	case notCIDR == nil:
		return "198.51." + strconv.Itoa(100+n) + ".0/24"
	case strings.HasPrefix(like, "--"):
		return "--" + name + "=on"
	case strings.HasPrefix(like, "-"):
		return "-" + name
	case strings.Contains(like, "://"):
		return "https://" + name + ".example.com/?a=b"
	case strings.HasPrefix(like, "/"):
		return "/" + name
	case number().MatchString(like):
		return strconv.Itoa(18990 + n)
	case pair().MatchString(like):
		return name + "=cml2YWw=" // base64, to find webhooks that do not expect an equals sign in the value
	case image().MatchString(like):
		return "registry.example.com/" + name + ":1"
	case colon().MatchString(like):
		return name + ":on"
	case upper().MatchString(like):
		return strings.ToUpper(name)
	}
	if _, err := netip.ParseAddr(like); err == nil {
		return "198.51.100." + strconv.Itoa(7+n)
	}
	if host().MatchString(like) {
		return name + ".example.com"
	}
	return name
}

// Fragment returns a JSON document with the additions of another party to a text, for [Format.With]. They are an
// element for each list, similar to the first element, and a member for each map in which all values are strings. If
// extra is set, there is also a member that the webhook does not know.
func Fragment(f Format, text string, extra bool) string {
	doc, _ := f.parse(text)
	fragment := fragmentOf(doc)
	if members, ok := fragment.(map[string]any); ok && extra {
		members["rivalField"] = "kept"
	}
	return string(tree.Encode(fragment))
}

func fragmentOf(doc any) any {
	switch doc := doc.(type) {
	case []any:
		if len(doc) == 0 {
			return []any{"rival"}
		}
		return []any{renamed(doc[0])}
	case map[string]any:
		out, alike := map[string]any{}, len(doc) > 0
		names := slices.Sorted(maps.Keys(doc))
		var first any
		if alike {
			first = doc[names[0]]
		}
		for _, name := range names {
			value := doc[name]
			switch value.(type) {
			case []any, map[string]any:
				if inner := fragmentOf(value); tree.Size(inner) > 1 {
					out[name] = inner
				}
			case string:
			default:
				alike = false
			}
			_, text := value.(string)
			_, texts := first.(string)
			alike = alike && text == texts
		}
		if _, isText := first.(string); alike && isText {
			out["rival"] = "yes"
		}
		return out
	}
	return nil
}

// renamed returns a copy of a list element with another name or value.
func renamed(element any) any {
	switch element := element.(type) {
	case string:
		return Token(element, 0)
	case int64:
		return int64(18990)
	case map[string]any:
		copied := tree.Clone(element).(map[string]any)
		for _, key := range []string{"name", "key", "id", "path", "host", "url"} {
			if text, ok := copied[key].(string); ok {
				copied[key] = Token(text, 0)
				return copied
			}
		}
		copied["name"] = "rival"
		return copied
	}
	return element
}

// Probe returns a text that another party may have set before the webhook wrote own: a document like own, with its
// format, or one item like those of own. It returns "" if own is empty or too long.
func Probe(own string) (text string, document Format) {
	if f, ok := Document(own); ok {
		doc, _ := f.parse(Fragment(f, own, true))
		return f.write(doc), f
	}
	if strings.TrimSpace(own) == "" || len(own) > 500 {
		return "", ""
	}
	return Token(Sample(own), 0), ""
}

// Sample returns the last item of a text whose separator is not known, or the whole text if it seems to be one item.
func Sample(own string) string {
	for _, s := range separators {
		if strings.Contains(own, s) && (s != ":" || strings.HasPrefix(own, "/")) {
			items := Format(s).Items(own)
			if len(items) > 0 {
				return items[len(items)-1]
			}
		}
	}
	return strings.TrimSpace(own)
}

// Alike returns an item of another party whose text contains the given item of the webhook. It returns "" unless the
// item is a name, a path or a number: a user's flag that is similar to the webhook's may be meant to replace it.
func Alike(item string) string {
	switch {
	case number().MatchString(item) && len(item) < 5:
		return item + "1"
	case number().MatchString(item):
	case keyword().MatchString(item):
		return "my-" + item + "-2"
	case strings.HasPrefix(item, "/") && !strings.ContainsAny(item, " =:,"):
		return "/my" + item + "-2"
	}
	return ""
}

// Shared returns the format of a text to which a webhook has added items. token is the one item that another party had
// set before the call, and after is the text after the call. It returns false if the webhook added nothing, or did not
// keep the token as an item.
func Shared(token, after string) (Format, bool) {
	at := strings.Index(after, token)
	if at < 0 || after == token {
		return "", false
	}
	before, behind := after[:at], after[at+len(token):]
	for _, s := range separators {
		if s != " " && (strings.HasPrefix(strings.TrimLeft(behind, " "), s) || strings.HasSuffix(strings.TrimRight(before, " "), s)) {
			return Format(s), slices.Contains(Format(s).Items(after), token)
		}
	}
	if strings.HasPrefix(behind, " ") || strings.HasSuffix(before, " ") {
		return " ", slices.Contains(Format(" ").Items(after), token)
	}
	return "", false
}
