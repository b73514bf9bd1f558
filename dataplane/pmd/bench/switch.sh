#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Open vSwitch with DPDK, polling on one CPU, between two ports: those of libdray in DIR and DIR/e by net_dray, or two vhost-user sockets in DIR. In
# namespaces of its own, where all of it dies with this script.
#
# usage: switch.sh DIR dray|vhost CPU DRIVER
set -euo pipefail
dir=$1 kind=$2 cpu=$3 driver=$4
export OVS_RUNDIR=$dir OVS_LOGDIR=$dir OVS_DBDIR=$dir
switchd=$(readlink -f /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk)
db=unix:$dir/db.sock
vsctl() { ovs-vsctl --db="$db" --timeout=15 "$@"; }

[ -x "$switchd" ] || { echo 'no ovs-vswitchd with DPDK: apt install openvswitch-switch-dpdk'; exit 1; }
ovsdb-tool create "$dir/conf.db" /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server "$dir/conf.db" "--remote=p$db" "--unixctl=$dir/db.ctl" --no-chdir -vsyslog:off -vconsole:warn &
until [ -S "$dir/db.sock" ]; do sleep 0.02; done

extra="-m 512 --no-pci --no-telemetry --no-huge --legacy-mem --no-shconf"
case $kind in
dray)
	extra+=" -d $driver"
	first=(type=dpdk "options:dpdk-devargs=net_dray0,dir=$dir,port=b,rx=copy")
	second=(type=dpdk "options:dpdk-devargs=net_dray1,dir=$dir/e,port=b,rx=copy")
	;;
vhost)
	first=(type=dpdkvhostuserclient "options:vhost-server-path=$dir/v1")
	second=(type=dpdkvhostuserclient "options:vhost-server-path=$dir/v2")
	;;
*) exit 2 ;;
esac
vsctl --no-wait set Open_vSwitch . other_config:dpdk-init=true other_config:per-port-memory=true \
	"other_config:dpdk-extra=\"$extra\"" "other_config:pmd-cpu-mask=$(printf '0x%x' $((1 << cpu)))"
"$switchd" "$db" "--unixctl=$dir/switch.ctl" --no-chdir -vsyslog:off -vconsole:warn &
vsctl add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=secure other_config:disable-in-band=true \
	-- add-port br0 p1 -- set interface p1 ofport_request=1 "${first[@]}" \
	-- add-port br0 p2 -- set interface p2 ofport_request=2 "${second[@]}"
[ "$(vsctl get Interface p1 ofport)$(vsctl get Interface p2 ofport)" = 12 ] || {
	vsctl get Interface p1 error
	vsctl get Interface p2 error
	exit 1
}
until [ -S "$dir/br0.mgmt" ]; do sleep 0.02; done
ovs-ofctl add-flow "unix:$dir/br0.mgmt" in_port=1,actions=output:2
ovs-ofctl add-flow "unix:$dir/br0.mgmt" in_port=2,actions=output:1
echo 'the switch is ready'
wait
