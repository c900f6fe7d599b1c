// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/admitkit/admitkit/pkg/lint"
)

// An object is an object of SARIF 2.1.0 (OASIS). The report has only the parts of SARIF that code scanners use for
// results.
type object = map[string]any

func message(text string) object { return object{"text": text} }

func (r *Report) writeSARIF(w io.Writer) error {
	indices := map[string]int{}
	rules, results := []object{}, []object{}
	for i, rule := range lint.Rules() {
		indices[rule.ID] = i
		rules = append(rules, object{
			"id": rule.ID, "shortDescription": message(rule.Title), "fullDescription": message(rule.Why), "help": message(rule.Fix),
			"helpUri": rule.Link, "defaultConfiguration": object{"level": levelOf(rule.Severity)},
		})
	}
	for _, f := range r.Findings {
		results = append(results, resultOf(f, indices[f.Rule]))
	}
	driver := object{"name": "admitkit lint", "informationUri": "https://github.com/admitkit/admitkit/blob/main/docs/lint.md", "rules": rules}
	return writeJSON(w, object{
		"$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		"version": "2.1.0", "runs": []object{{"tool": object{"driver": driver}, "results": results}},
	})
}

func levelOf(s lint.Severity) string {
	if s == lint.Advice {
		return "note"
	}
	return string(s)
}

func resultOf(f Finding, index int) object {
	name := strings.Trim(f.Object+"/"+f.Path, "/")
	location := object{"logicalLocations": []object{{"fullyQualifiedName": name, "kind": "object"}}}
	if f.File != "" && f.File != "-" {
		location["physicalLocation"] = object{
			"artifactLocation": object{"uri": uriOf(f.File)}, "region": object{"startLine": max(1, f.Line)},
		}
	}
	// The fingerprint has no line number, so that it does not change when lines are added above the finding.
	sum := sha256.Sum256([]byte(strings.Join([]string{f.Rule, f.Object, f.Webhook, f.Path}, "\x00")))
	result := object{
		"ruleId": f.Rule, "ruleIndex": index, "level": levelOf(f.Severity), "message": message(f.Message + ". Fix: " + f.Fix),
		"locations": []object{location}, "partialFingerprints": object{"admitkit/v1": hex.EncodeToString(sum[:16])},
	}
	if f.Suppressed != "" {
		kind := "inSource"
		if f.external {
			kind = "external"
		}
		result["suppressions"] = []object{{"kind": kind, "justification": f.Suppressed}}
	}
	return result
}

// uriOf returns the URI of a file. It is relative if the name of the file is relative.
func uriOf(file string) string {
	u := url.URL{Path: filepath.ToSlash(filepath.Clean(file))}
	if filepath.IsAbs(file) {
		u.Scheme = "file"
	}
	return u.String()
}
