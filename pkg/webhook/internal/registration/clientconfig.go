// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateClientConfig checks the address in a registration. The address may be empty, since Configurations can add it.
// Configurations also checks the caBundle, which a server does not need.
func (r *Registration) validateClientConfig(at *field.Path) field.ErrorList {
	c := r.ClientConfig
	var errs field.ErrorList
	switch {
	case c.URL != nil && c.Service != nil:
		errs = append(errs, field.Invalid(at, "url and service", "exactly one of url and service may be set"))
	case c.URL != nil:
		errs = append(errs, ValidateURL(at.Child("url"), *c.URL)...)
	case c.Service != nil:
		errs = append(errs, ValidateServicePath(at.Child("service").Child("path"), r.Path())...)
		errs = append(errs, ValidateService(at.Child("service"), c.Service)...)
	}
	return errs
}

// ValidateBundle checks a CA bundle more strictly than the API server. The API server accepts any bytes, and if they
// contain no certificate, every call fails. Anyone who may read the configuration can read the bundle. So the bundle
// must not hold a private key, and the error never quotes it. White space counts as empty: tools that inject a CA later
// often use a line feed as a placeholder.
func ValidateBundle(at *field.Path, bundle []byte) field.ErrorList {
	if IsBlank(bundle) {
		return nil
	}
	problem := func(text string) field.ErrorList {
		return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d bytes", len(bundle)), text)}
	}
	blocks := 0
	for rest := bundle; ; blocks++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return problem(fmt.Sprintf("holds a PEM block of type %q: anyone can read it, so it must hold only certificates", block.Type))
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return problem(fmt.Sprintf("PEM block %d is not a certificate: %v", blocks+1, err))
		}
	}
	switch begun := bytes.Count(bundle, []byte("-----BEGIN ")); {
	case begun > blocks: // the decoder skips invalid blocks
		return problem(fmt.Sprintf("%d of %d PEM blocks cannot be read", begun-blocks, begun))
	case blocks == 0:
		return problem("holds no certificate: want PEM, as in the file ca.crt")
	}
	return nil
}

// IsBlank reports whether a CA bundle has only white space.
func IsBlank(bundle []byte) bool { return len(bytes.TrimSpace(bundle)) == 0 }

// ValidateService checks the port and the namespace of a Service, if they are set. Configurations may add missing
// fields.
func ValidateService(at *field.Path, s *admissionregistrationv1.ServiceReference) field.ErrorList {
	errs := ValidateNamespace(at.Child("namespace"), s.Namespace)
	if s.Port != nil {
		for _, problem := range validation.IsValidPortNum(int(*s.Port)) {
			errs = append(errs, field.Invalid(at.Child("port"), *s.Port, problem))
		}
	}
	return errs
}

// ValidateNamespace checks that a namespace is a valid name, if it is set.
func ValidateNamespace(at *field.Path, namespace string) field.ErrorList {
	if namespace == "" {
		return nil
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(namespace) {
		errs = append(errs, field.Invalid(at, namespace, problem))
	}
	return errs
}

// ValidateURL checks the URL of a webhook as the API server does (ValidateWebhookURL).
func ValidateURL(at *field.Path, raw string) field.ErrorList {
	u, err := url.Parse(raw)
	if err != nil {
		return field.ErrorList{field.Required(at, "url must be a valid URL: "+err.Error())}
	}
	var errs field.ErrorList
	check := func(ok bool, problem string) {
		if !ok {
			errs = append(errs, field.Invalid(at, raw, problem))
		}
	}
	check(u.Scheme == "https", "must begin with https://")
	check(u.Host != "", "must name a host")
	check(u.User == nil, "must not hold user information")
	check(u.Fragment == "", "must not have a fragment")
	check(u.RawQuery == "", "must not have a query")
	return errs
}

// ValidateServicePath checks the path of a Service as the API server does (ValidateWebhookService).
func ValidateServicePath(at *field.Path, p string) field.ErrorList {
	if p == "/" {
		return nil
	}
	if !strings.HasPrefix(p, "/") {
		return field.ErrorList{field.Invalid(at, p, "must start with a slash")}
	}
	var errs field.ErrorList
	for segment := range strings.SplitSeq(strings.TrimSuffix(p[1:], "/"), "/") {
		for _, problem := range validation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(at, p, "segment "+strconv.Quote(segment)+": "+problem))
		}
	}
	return errs
}

// CheckServedPath returns an error if ServedPath is not an absolute path.
func (r *Registration) CheckServedPath() error {
	if r.ServedPath == nil {
		return nil
	}
	p := *r.ServedPath
	if !strings.HasPrefix(p, "/") {
		return fmt.Errorf("webhook %s: the path %q must start with a slash", r.Name, p)
	}
	if u, err := url.Parse(p); err != nil || u.Path != p {
		return fmt.Errorf("webhook %s: the path %q must be only a path, without host, query, fragment or percent-escapes", r.Name, p)
	}
	return nil
}

// CleanPath returns a path as the API server requests it (DefaultVersionedAPIPath uses path.Join): without trailing or
// double slashes, and with "." and ".." elements resolved.
func CleanPath(p string) string { return path.Clean("/" + p) }
