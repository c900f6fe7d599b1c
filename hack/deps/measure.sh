#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the Markdown tables of docs/dependencies.md: the packages and modules that an import adds to a
# program, and the size of a stripped program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
module=$(go list -m)

size_of() { # prints the size in MB of the program given
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$work/program" "$1"
	wc -c <"$work/program" | awk '{ printf "%.1f", $1 / 1000000 }'
}

# Prints a row for packages that are imported together. The program imports them and calls nothing, which is
# the least that any use costs.
row() {
	local title=$1 package packages modules
	shift
	packages=$(go list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' "$@" | grep -vc "^$module" || true)
	modules=$(go list -deps -f '{{with .Module}}{{.Path}}{{end}}' "$@" | sort -u | grep -vc -e '^$' -e "^$module\$" || true)
	{
		echo "package main"
		for package in "$@"; do echo "import _ \"$package\""; done
		echo "func main() {}"
	} >"$work/main.go"
	echo "| $title | $packages | $modules | $(size_of "$work/main.go") |"
}

# Lists the packages of a module that the packages below pkg/ import directly or indirectly, without tests.
imported() {
	go list -deps ./pkg/... | grep "^$module/" | xargs go list -f '{{join .Imports "\n"}}' |
		sort -u | grep -e "^$1\$" -e "^$1/" || true
}

echo "| A program that imports | packages | modules | size, MB |"
echo "|---|---|---|---|"
row "nothing" errors
for package in $(go list ./pkg/... | grep -v /internal/); do row "\`${package#"$module/"}\`" "$package"; done
for package in $(go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./examples/... 2>/dev/null) "$module/cmd/admitkit"; do
	packages=$(go list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' "$package" | grep -vc "^$module")
	modules=$(go list -deps -f '{{with .Module}}{{.Path}}{{end}}' "$package" | sort -u | grep -vc -e '^$' -e "^$module\$")
	echo "| \`${package#"$module/"}\`, whole | $packages | $modules | $(size_of "$package") |"
done
row "\`controller-runtime/pkg/webhook\`, to compare" sigs.k8s.io/controller-runtime/pkg/webhook

echo
echo "| What we import of | packages | modules | size, MB |"
echo "|---|---|---|---|"
for dependency in $(go list -m -f '{{if not (or .Indirect .Main)}}{{.Path}}{{end}}' all); do
	packages=$(imported "$dependency")
	# shellcheck disable=SC2086 # one word for each package
	if [[ -n $packages ]]; then row "\`$dependency\`" $packages; else echo "| \`$dependency\` (tests and tools only) | | | |"; fi
done
