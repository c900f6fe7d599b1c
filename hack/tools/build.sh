#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a tool that hack/tools/go.mod pins, unless it is built already, and prints the path of the binary.
#
#   hack/tools/build.sh golangci-lint
#   hack/tools/build.sh benchstat
#   hack/tools/build.sh helm        from hack/helm/go.mod, which pins other Kubernetes libraries
#
# ADMITKIT_CACHE is the folder for the binaries (default: .cache in the repository).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
name=${1:?usage: build.sh golangci-lint|benchstat|helm}
[[ $name != helm ]] || here=$root/hack/helm

# Linters type-check with the Go they were built with, so the Go version counts.
content=$({ cat "$here/go.mod" "$here/go.sum"; go env GOVERSION GOOS GOARCH; } | git hash-object --stdin)
binary=${ADMITKIT_CACHE:-$root/.cache}/tools/${content:0:12}/$name

if [[ ! -x $binary ]]; then
	echo "tools: building $name, kept for later runs (golangci-lint takes about 3 minutes on 2 cores)" >&2
	package=$(awk -v suffix="/$name" '$1 == "module" { next } { for (i = 1; i <= 2; i++) if ($i ~ suffix "$") { print $i; exit } }' "$here/go.mod")
	[[ -n $package ]] || { echo "tools: $name is not a tool in $here/go.mod" >&2; exit 1; }
	mkdir -p "$(dirname "$binary")"
	temporary=$(mktemp "$binary.XXXXXX")
	trap 'rm -f "$temporary"' EXIT
	(cd "$here" && GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$temporary" "$package")
	chmod 755 "$temporary"
	mv -f "$temporary" "$binary"
	trap - EXIT
	echo "tools: built $name in $SECONDS s" >&2
fi
echo "$binary"
