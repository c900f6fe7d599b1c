#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks what neither the compiler nor the linter sees: licence lines,
# formatting, module files, shell scripts, commit subjects. Reports everything, then fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
fail() {
	failed=1
	echo "check: $*" >&2
}

# Prints the files of a pathspec that git tracks, or that it would add.
# testdata holds inputs and outputs, not sources.
sources() {
	git ls-files --cached --others --exclude-standard -- "$@" ':!**/testdata/**' | sort -u |
		while IFS= read -r file; do [[ ! -f $file ]] || echo "$file"; done
}

while IFS= read -r file; do
	head -3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
		fail "$file: no SPDX-License-Identifier line at the top"
done < <(sources '*.go' '*.sh' '*.yaml' '*.yml' Makefile .ci/run)

while IFS= read -r file; do
	fail "$file: not formatted, run 'make fmt'"
done < <(sources '*.go' | xargs gofmt -l)

while IFS= read -r file; do
	lines=$(wc -l <"$file" | tr -d ' ')
	((lines <= 400)) || echo "check: warning: $file has $lines lines; 400 are allowed, split it by topic" >&2
done < <(sources 'pkg/*.go' ':!*_test.go')

for module in . verifytest test/controlplane/sampleapiserver hack/bench hack/browser hack/certmanager hack/gallery hack/monitoring hack/release hack/helm; do
	tidy=$(cd $module && GOWORK=off go mod tidy -diff) ||
		fail "go.mod or go.sum in $module is not tidy, run 'go mod tidy' there:"$'\n'"$(head -40 <<<"$tidy")"
done
GOWORK=off go mod verify >/dev/null || fail "a downloaded module differs from go.sum"

if command -v shellcheck >/dev/null; then
	scripts=$(sources '*.sh' .ci/run)
	# shellcheck disable=SC2086 # one word for each script; none has a space
	shellcheck $scripts || fail "shellcheck found the above"
fi

hack/commits.sh || failed=1

[[ $failed == 0 ]] || exit 1
echo "check: licence lines, formatting, modules, scripts and commit subjects are in order"
