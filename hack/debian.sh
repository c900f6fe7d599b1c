#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of a program that a test needs and that Debian packages:
#
#   hack/debian.sh PACKAGE PROGRAM
#
# If PROGRAM is not on PATH, the script installs the package, as root on Debian or a derivative. Otherwise it
# prints what to install, and fails.
set -euo pipefail

package=${1:?the name of the Debian package}
program=${2:?the name of the program}

if command -v "$program"; then exit 0; fi

if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
	echo "debian: $program is not on PATH: install it (on Debian: sudo apt-get install $package)" >&2
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
install() { apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=120 "$package" >&2; }
echo "debian: installing $package" >&2
# The package lists may be missing or outdated.
install || { apt-get update --quiet >&2 && install; } || {
	echo "debian: apt-get could not install $package, which has $program; its output is above" >&2
	exit 1
}
hash -r
command -v "$program" || {
	echo "debian: the package $package has no program $program" >&2
	exit 1
}
