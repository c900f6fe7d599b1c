#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Keeps hack/next/go.mod equal to go.mod, but with newer controller-runtime and Kubernetes libraries. So one
# source tree is built and tested with both supported minors.
#
#   hack/next/sync.sh          rewrite hack/next/go.mod and go.sum
#   hack/next/sync.sh --check  fail, with the difference, if they are stale
set -euo pipefail

controller_runtime=v0.25.2
kubernetes=v0.37.2

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$root"
{
	echo "// SPDX-License-Identifier: Apache-2.0"
	echo
	echo "// Written by hack/next/sync.sh from the go.mod of the repository: do not edit."
	echo "// Use: go test -modfile=hack/next/go.mod ./..."
	grep -v '^//' go.mod
} >"$work/go.mod"
cp go.sum "$work/go.sum"

# The modules that Kubernetes releases together all carry the version of k8s.io/api.
current=$(awk '$1 == "k8s.io/api" { print $2; exit }' go.mod)
awk -v minor="${current%.*}." '$1 ~ "^k8s.io/" && index($2, minor) == 1 { print $1 }' go.mod |
	while IFS= read -r module; do
		go mod edit -require="$module@$kubernetes" "$work/go.mod"
	done
go mod edit -require="sigs.k8s.io/controller-runtime@$controller_runtime" "$work/go.mod"
if ! GOWORK=off go mod tidy -modfile="$work/go.mod" >"$work/tidy.log" 2>&1; then
	cat "$work/tidy.log" >&2
	echo "next: go mod tidy failed with controller-runtime $controller_runtime and k8s.io $kubernetes" >&2
	exit 1
fi

case ${1-} in
--check)
	for file in go.mod go.sum; do
		if ! diff -u "$here/$file" "$work/$file"; then
			echo "next: hack/next/$file does not follow go.mod; run 'make next-sync' and commit the result" >&2
			exit 1
		fi
	done
	;;
"") cp "$work/go.mod" "$work/go.sum" "$here/" ;;
*)
	echo "usage: sync.sh [--check]" >&2
	exit 2
	;;
esac
