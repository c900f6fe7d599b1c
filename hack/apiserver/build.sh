#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds kube-apiserver, etcd and kubectl at the versions that
# internal/apiserver/build/pinned names, and prints the folder that holds them.
#
#   hack/apiserver/build.sh               build what is missing, print the folder
#   hack/apiserver/build.sh --kubernetes 1.35  build another release than the default
#   hack/apiserver/build.sh --print-path  print the folder only
#   hack/apiserver/build.sh --also kube-controller-manager  build this, too
#
# Environment:
#   KUBEBUILDER_ASSETS  a folder with the three binaries: used as it is, nothing is built
#   ADMITKIT_KUBERNETES  the release to build, such as 1.35
#   ADMITKIT_CACHE      folder for the binaries (default: .cache in the repository)
#
# Standard output is the folder, standard error is everything else.
set -euo pipefail

command -v go >/dev/null || { echo "apiserver: Go is not installed (https://go.dev/dl)" >&2; exit 1; }
if [[ -n ${ADMITKIT_CACHE-} ]]; then
	mkdir -p "$ADMITKIT_CACHE"
	ADMITKIT_CACHE=$(cd "$ADMITKIT_CACHE" && pwd)
	export ADMITKIT_CACHE
fi
if [[ -d ${KUBEBUILDER_ASSETS-} ]]; then # it may be relative to the caller's folder
	KUBEBUILDER_ASSETS=$(cd "$KUBEBUILDER_ASSETS" && pwd)
	export KUBEBUILDER_ASSETS
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
GOWORK=off exec go run ./hack/apiserver "$@"
