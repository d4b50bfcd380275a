#!/bin/sh
# node.sh KIND: configures this container from deploy/redis, once, and becomes its Redis: a master, replica, sentinel or
# cluster node. REDIS_MASTER_HOST is the address of the first master.
set -eu

kind=$1
export REDIS_DIR=/state REDIS_MASTER_PORT=6379 SENTINEL_QUORUM=2
for file in /passwords/*/*; do
	read -r password <"$file"
	export "${file##*/}=$password"
done

render() { sh /deploy/redis/render.sh "/deploy/redis/$1" >"/state/$1"; }

configure() {
	umask 077
	case $kind in
	sentinel)
		render sentinel-users.acl
		render sentinel.conf
		;;
	cluster)
		render cluster-users.acl
		render redis.conf
		render cluster.conf
		;;
	*)
		render users.acl
		render redis.conf
		[ "$kind" = master ] || echo "replicaof $REDIS_MASTER_HOST $REDIS_MASTER_PORT" >>/state/redis.conf
		;;
	esac
	: >/state/configured
}

# What Redis and Sentinel have written into their files since is kept. A master that comes back is empty, and its replicas
# would copy that: they must have replaced it before, which begins when it has been silent for 3 s.
if [ ! -e /state/configured ]; then
	configure
elif [ "$kind" != sentinel ]; then
	sleep 10
fi
case $kind in
sentinel) exec redis-server /state/sentinel.conf --sentinel ;;
cluster) exec redis-server /state/cluster.conf ;;
*) exec redis-server /state/redis.conf ;;
esac
