// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"regexp"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// pullPolicy returns the default policy for an image: Always for the tag latest or no tag. An
// invalid name counts as a name with another tag.
func pullPolicy(image string) corev1.PullPolicy {
	name, _, digest := strings.Cut(image, "@")
	tag := name[strings.LastIndexByte(name, '/')+1:]
	_, tag, tagged := strings.Cut(tag, ":")
	if tagged && tag != "latest" || !tagged && digest || !isReference(image) {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

// maxRepository is the maximum length of a repository, including its host.
const maxRepository = 255

const (
	repositoryPart = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	hostPart       = `(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])`
	hostName       = `(?:` + hostPart + `(?:\.` + hostPart + `)*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?`
)

// The patterns are compiled when the first image is read, because most commands read none.
var (
	hostPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + hostName + `$`) })

	remainderPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(` + repositoryPart + `(?:/` + repositoryPart + `)*)(?::\w[\w.-]{0,127})?` +
			`(?:@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?$`)
	})

	identifierPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-f0-9]{64}$`) })
)

// isReference reports whether image is a valid reference by the grammar of the OCI distribution.
func isReference(image string) bool {
	if identifierPattern().MatchString(image) {
		return false
	}
	host, remainder := splitHost(image)
	found := remainderPattern().FindStringSubmatch(remainder)
	return found != nil && len(host)+1+len(found[1]) <= maxRepository && hostPattern().MatchString(host)
}

// splitHost splits off the first part of a name if it looks like a host.
func splitHost(image string) (host, remainder string) {
	const hub = "docker.io"
	host, remainder, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" && strings.ToLower(host) == host {
		host, remainder = hub, image
	}
	if host == "index.docker.io" {
		host = hub
	}
	if host == hub && !strings.Contains(remainder, "/") {
		remainder = "library/" + remainder
	}
	return host, remainder
}
