#!/bin/sh
# render.sh FILE: prints the template FILE, redis.conf or users.acl say, with every ${NAME} outside of comments replaced
# by the environment variable NAME. In .acl files it also drops comments, and joins lines that begin with white space to
# the line before: Redis takes neither. If a variable is missing or unfit, it prints nothing and fails.
#
#   export REDIS_DIR=/data REPLICATION_PASSWORD=...
#   umask 077; deploy/redis/render.sh deploy/redis/redis.conf >/data/redis.conf
set -eu

case $1 in
*.acl) acl=1 ;;
*) acl=0 ;;
esac

# In the C locale a range of characters is what it looks like.
LC_ALL=C awk -v acl="$acl" '
# What would end the word early must not become a file that means something else. \047 is an apostrophe.
function fit(v) {
	return v != "" && v !~ /[^!-~]/ && !index(v, "\"") && !index(v, "\047") && !index(v, "#") && !index(v, "\\")
}
function fill(line,    out, name) {
	while (match(line, /\$\{[A-Z_]+\}/)) {
		name = substr(line, RSTART + 2, RLENGTH - 3)
		if (!fit(ENVIRON[name] "")) {
			print "render.sh: " name " must be one word without quotes, # and \\" >"/dev/stderr"
			failed = 1
		}
		out = out substr(line, 1, RSTART - 1) ENVIRON[name]
		line = substr(line, RSTART + RLENGTH)
	}
	return out line
}
!acl { all = all (/^[ \t]*#/ ? $0 : fill($0)) "\n"; next }
/^[ \t]*(#|$)/ { next }
/^[ \t]/ { sub(/^[ \t]+/, ""); all = all " " fill($0); next }
{ all = all (all == "" ? "" : "\n") fill($0) }
END {
	if (failed) exit 1
	printf "%s", all (acl ? "\n" : "")
}
' "$1"
