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

// The parts of SARIF 2.1.0 (OASIS) that results of code scanners use.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string        `json:"id"`
		ShortDescription sarifMessage  `json:"shortDescription"`
		FullDescription  sarifMessage  `json:"fullDescription"`
		Help             sarifMessage  `json:"help"`
		HelpURI          string        `json:"helpUri"`
		Default          sarifSeverity `json:"defaultConfiguration"`
	}
	sarifSeverity struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifMessage       `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

func (r *Report) writeSARIF(w io.Writer) error {
	run := sarifRun{Results: []sarifResult{}, Tool: sarifTool{Driver: sarifDriver{
		Name: "admitkit lint", InformationURI: "https://github.com/admitkit/admitkit/blob/main/docs/lint.md",
	}}}
	indices := map[string]int{}
	for i, rule := range lint.Rules() {
		indices[rule.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: rule.ID, ShortDescription: sarifMessage{rule.Title}, FullDescription: sarifMessage{rule.Why},
			Help: sarifMessage{rule.Fix}, HelpURI: rule.Link, Default: sarifSeverity{levelOf(rule.Severity)},
		})
	}
	for _, f := range r.Findings {
		run.Results = append(run.Results, resultOf(f, indices[f.Rule]))
	}
	return writeJSON(w, sarifLog{
		Schema:  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func levelOf(s lint.Severity) string {
	if s == lint.Advice {
		return "note"
	}
	return string(s)
}

func resultOf(f Finding, index int) sarifResult {
	name := strings.Trim(f.Object+"/"+f.Path, "/")
	result := sarifResult{
		RuleID: f.Rule, RuleIndex: index, Level: levelOf(f.Severity), Message: sarifMessage{f.Message + ". Fix: " + f.Fix},
		Locations: []sarifLocation{{Logical: []sarifLogical{{FullyQualifiedName: name, Kind: "object"}}}},
	}
	if f.File != "" && f.File != "-" {
		result.Locations[0].Physical = &sarifPhysical{sarifArtifact{uriOf(f.File)}, sarifRegion{max(1, f.Line)}}
	}
	// The fingerprint has no line number, so that it does not change when lines are added above the finding.
	sum := sha256.Sum256([]byte(strings.Join([]string{f.Rule, f.Object, f.Webhook, f.Path}, "\x00")))
	result.Fingerprints = map[string]string{"admitkit/v1": hex.EncodeToString(sum[:16])}
	if f.Suppressed != "" {
		kind := "inSource"
		if f.external {
			kind = "external"
		}
		result.Suppressions = []sarifSuppression{{kind, f.Suppressed}}
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
