#!/bin/sh
# create-cluster.sh HOST:PORT...: makes one Cluster of these nodes, with a replica for each master, unless there is one.
# It fails as long as a node is missing, so it must be started again until it succeeds.
set -eu

read -r REDISCLI_AUTH </passwords/servers/OPERATOR_PASSWORD
export REDISCLI_AUTH

for node; do
	said=$(redis-cli --user operator -h "${node%:*}" -p "${node##*:}" cluster info)
	case $said in
	*cluster_slots_assigned:16384*) exit ;;
	*cluster_state:*) ;;
	*)
		echo "$node: $said" >&2
		exit 1
		;;
	esac
done
exec redis-cli --user operator --cluster create "$@" --cluster-replicas 1 --cluster-yes
