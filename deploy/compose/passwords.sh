#!/bin/sh
# passwords.sh: makes up a password for every account in deploy/redis/*.acl that has none yet. The service is shown its
# own only.
set -eu

make() {
	[ -e "$1" ] && return
	read -r password </proc/sys/kernel/random/uuid
	printf '%s\n' "$password" >"$1"
}

for name in RATELIMIT_REDIS_PASSWORD RATELIMIT_SENTINEL_PASSWORD; do
	make "/passwords/service/$name"
done
for name in REPLICATION_PASSWORD SENTINEL_REDIS_PASSWORD SENTINEL_PEER_PASSWORD OPERATOR_PASSWORD; do
	make "/passwords/servers/$name"
done
