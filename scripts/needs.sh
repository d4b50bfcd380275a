#!/bin/sh
# needs.sh PROGRAM...: makes sure that the programs are there. As root on Debian it installs the missing ones, elsewhere
# it names them all, and what brings them, and fails.
set -eu

# The Debian package of a program.
package() {
	case $1 in
	gcc) echo "gcc libc6-dev" ;; # go test -race links with it
	h2load) echo nghttp2-client ;;
	redis-cli) echo redis-tools ;;
	promtool) echo prometheus ;;
	dockerd) echo "docker.io iptables" ;;
	*) echo "$1" ;;
	esac
}

missing=
packages=
for program in "$@"; do
	# Debian keeps daemons where the PATH of a plain user does not look.
	PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null && continue
	missing="$missing $program"
	packages="$packages $(package "$program")"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "needs.sh: missing:$missing (on Debian these are the packages:$packages)" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "needs.sh: missing:$missing" >&2
	echo "needs.sh: get them with: sudo apt-get install --no-install-recommends$packages" >&2
	exit 1
fi
echo "needs.sh: installing$packages"
apt-get -qq update
# shellcheck disable=SC2086 # A list of package names.
DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $packages >/dev/null
