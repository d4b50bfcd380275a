#!/bin/sh
# fuzz.sh DURATION: runs every fuzz target of the module for that long, one after the other: go test fuzzes only one
# target at a time.
set -eu

duration=${1:?usage: fuzz.sh DURATION}
found=0
for package in $(go list ./...); do
	for target in $(go test -run '^$' -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz.sh: $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "$package"
		found=$((found + 1))
	done
done
[ "$found" -gt 0 ] || { echo "fuzz.sh: the module has no fuzz target" >&2; exit 1; }
