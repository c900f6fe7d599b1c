#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds kube-apiserver, etcd and kubectl at the versions that go.mod beside
# this script pins, and prints the folder that holds them.
#
#   hack/apiserver/build.sh               build what is missing, print the folder
#   hack/apiserver/build.sh --print-path  print the folder only
#
# Environment:
#   KUBEBUILDER_ASSETS  a folder with the three binaries: used as it is, nothing is built
#   ADMITKIT_CACHE      where built things are kept (default: .cache in the repository)
#
# The folder goes to standard output, everything else to standard error.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
binaries="etcd kube-apiserver kubectl" # the shortest build first

say() { echo "apiserver: $*" >&2; }
die() { say "$*"; exit 1; }

package_of() {
	case $1 in
	etcd) echo go.etcd.io/etcd/server/v3 ;;
	*) echo "k8s.io/kubernetes/cmd/$1" ;;
	esac
}

# The linker flags Kubernetes' own release build uses. Without them every
# component says v0.0.0-master, which clients and the server treat specially.
version_flags() {
	local version=$1 package flags="-s -w" number=${1#v}
	local major=${number%%.*} rest=${number#*.}
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags="$flags -X $package.gitVersion=$version -X $package.gitMajor=$major"
		flags="$flags -X $package.gitMinor=${rest%%.*} -X $package.gitCommit= -X $package.gitTreeState=clean"
	done
	echo "$flags"
}

# Turns `go build -v` into a line now and then; errors pass through.
progress() {
	local name=$1 start=$SECONDS said=$SECONDS downloads=0 packages=0 line
	while IFS= read -r line; do
		case $line in
		"go: downloading "*) downloads=$((downloads + 1)) ;;
		*[!A-Za-z0-9./_~-]*) echo "$line" >&2 ;;
		*) packages=$((packages + 1)) ;;
		esac
		if ((SECONDS - said >= 15)); then
			said=$SECONDS
			say "  $name: $((SECONDS - start)) s, $downloads modules downloaded, $packages packages compiled"
		fi
	done
}

build() {
	local name=$1 target=$2 temporary
	temporary=$(mktemp "$target/.$name.XXXXXX")
	trap 'rm -f "$temporary"' EXIT
	(cd "$here" && GOWORK=off CGO_ENABLED=0 go build -v -trimpath -buildvcs=false \
		-ldflags "$(version_flags "$version")" -o "$temporary" "$(package_of "$name")") 2>&1 |
		progress "$name" || die "building $name failed"
	chmod 755 "$temporary"
	mv -f "$temporary" "$target/$name"
	trap - EXIT
}

missing_in() {
	local name missing=""
	for name in $binaries; do
		[[ -f $1/$name && -x $1/$name ]] || missing="$missing $name"
	done
	echo "${missing# }"
}

if [[ $# -gt 1 || (-n ${1-} && $1 != --print-path) ]]; then
	die "usage: build.sh [--print-path]"
fi

if [[ -n ${KUBEBUILDER_ASSETS-} ]]; then
	missing=$(missing_in "$KUBEBUILDER_ASSETS")
	[[ -z $missing ]] ||
		die "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, which lacks: $missing. Complete it, or unset KUBEBUILDER_ASSETS to build them."
	[[ ${1-} == --print-path ]] || say "using KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS"
	echo "$KUBEBUILDER_ASSETS"
	exit 0
fi

command -v go >/dev/null || die "Go is not installed (https://go.dev/dl)"
version=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' "$here/go.mod")
content=$(cat "$here/go.mod" "$here/go.sum" "$here/build.sh" | git hash-object --stdin)
platform=$(go env GOOS)-$(go env GOARCH)
target=${ADMITKIT_CACHE:-$root/.cache}/apiserver/$version-$platform-${content:0:12}/bin

if [[ ${1-} == --print-path ]]; then
	echo "$target"
	exit 0
fi

mkdir -p "$target"
target=$(cd "$target" && pwd)
if command -v flock >/dev/null; then # without it two runs build twice; the renames keep that safe
	exec 9>"$target/.lock"
	flock -n 9 || { say "waiting for another build of the same binaries"; flock 9; }
fi

missing=$(missing_in "$target")
if [[ -n $missing ]]; then
	say "building $missing ($version). The first time takes about 5 minutes on 2 cores; later runs reuse them."
	number=0
	for name in $missing; do
		number=$((number + 1))
		say "[$number/$(wc -w <<<"$missing" | tr -d ' ')] $name"
		build "$name" "$target"
	done
	say "built $missing in $SECONDS s: $target"
fi
echo "$target"
