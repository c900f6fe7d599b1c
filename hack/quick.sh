#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: quick.sh [PACKAGE...]
#
# Tests and lints the packages that differ from main, and those that import them directly. It uses neither
# the race detector nor an API server, and takes less than a minute once everything is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# These take minutes, so quick only compiles them.
slow='/(cmd/admitkit|docs|hack/(docs|demo)|pkg/idempotence|pkg/idempotence/internal/[^/]*|test/.*|examples/sidecar-injector/inject|internal/cli/(scaffold|gohooks|explain))$'

base=
for main in origin/main main; do
	base=$(git merge-base HEAD "$main" 2>/dev/null) && break
done
base=${base:-HEAD}

module=$(go list -m)
if (($#)); then
	changed=$(go list "$@")
else
	folders=$({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } |
		grep '\.go$\|/testdata/' | sed 's|/testdata/.*|/x|' | xargs -r -n1 dirname | sort -u)
	changed=
	for folder in $folders; do
		changed+=$(go list -e -f '{{if .Name}}{{.ImportPath}}{{end}}' "./$folder" 2>/dev/null | grep "^$module" || true)$'\n'
	done
	changed=$(sort -u <<<"$changed" | sed '/^$/d')
fi
if [[ -z $changed ]]; then
	echo "quick: no Go package differs from ${base:0:12}; name some with PKG=./pkg/patch"
	exit 0
fi

importers=$(go list -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
	awk 'NR == FNR { changed[$1]; next } { for (i = 2; i <= NF; i++) if ($i in changed) { print $1; next } }' <(echo "$changed") -)
if (($#)); then
	importers=
fi
all=$(printf '%s\n' "$changed" "$importers" | sort -u | sed '/^$/d')
skipped=$(grep -E "$slow" <<<"$all" || true)
tested=$(grep -vE "$slow" <<<"$all" || true)
if (($#)); then # a package that the user names is always tested
	tested=$all skipped=
fi

status=0
if [[ -n $tested ]]; then
	# shellcheck disable=SC2086 # one word for each package
	ADMITKIT_APISERVER=none go test $tested || status=1
fi
if [[ -n $skipped ]]; then
	# shellcheck disable=SC2086
	go vet $skipped || status=1
fi
if grep -q '/pkg/idempotence' <<<"$skipped"; then # the first patterns show most mistakes in the harness
	ADMITKIT_APISERVER=none go test -run 'Report|TestFindsAllPatterns/P0[1-4]' ./pkg/idempotence || status=1
fi
lint=$(hack/tools/build.sh golangci-lint)
# shellcheck disable=SC2086 # one word for each package
"$lint" run --allow-parallel-runners --new-from-rev="$base" ${changed//$module/.} || status=1
echo "quick: NOT RUN: tests that need an API server${skipped:+, and of the packages that take minutes}; make test runs all"
exit "$status"
