/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: found, configured, started, closed. */
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>

#include "program.h"

#define CACHE 256u /* mbufs that a thread keeps */
#define TAGS 8u	   /* bytes of VLAN tags that an MTU does not count */
/* bytes of virtio's header, which net_virtio_user needs in the mbuf in addition to the frame */
#define VIRTIO 12u
#define RING 1024u /* a net_memif ring has this size, whatever is requested */

static int failed(const struct program *p, unsigned port, const char *what, int error)
{
	fprintf(stderr, "dray-vnf: %s: %s: %s\n", p->names[port].name, what,
		rte_strerror(error < 0 ? -error : error));
	return -1;
}

int ports_find(struct program *p)
{
	const char *wrong;
	uint16_t id;

	RTE_ETH_FOREACH_DEV (id) {
		if (p->ports < PORTS_MAX) {
			p->device[p->ports] = id;
			rte_eth_dev_get_name_by_port(id, p->names[p->ports].name);
		}
		p->ports++;
	}
	wrong = options_check_ports(&p->options, p->ports);
	if (!wrong)
		return 0;
	fprintf(stderr, "dray-vnf: %s\n", wrong);
	return -1;
}

/* Addresses, and the MTU: the requested one, or the device's own. */
static int read_setup(struct program *p, unsigned i)
{
	struct port_setup *setup = &p->function.port[i];
	struct rte_ether_addr mac;
	uint16_t mtu;
	int ret = rte_eth_macaddr_get(p->device[i], &mac);

	if (ret == 0)
		ret = rte_eth_dev_get_mtu(p->device[i], &mtu);
	if (ret < 0)
		return failed(p, i, "reading its MAC address and its MTU", ret);
	options_port(&p->options, i, setup);
	memcpy(setup->mac, mac.addr_bytes, MAC);
	setup->mtu = p->options.mtu_of & 1u << i ? p->options.mtu[i] : mtu;
	return 0;
}

/* A frame of the largest MTU is one segment; a larger one has several, or is not received. */
static int make_pool(struct program *p)
{
	uint32_t ring = p->options.descriptors > RING ? p->options.descriptors : RING,
		 room = RTE_MBUF_DEFAULT_DATAROOM, count;

	for (unsigned i = 0; i < p->ports; i++) {
		uint32_t frame = p->function.port[i].mtu + RTE_ETHER_HDR_LEN + TAGS + VIRTIO;

		room = frame > room ? frame : room;
	}
	room += RTE_PKTMBUF_HEADROOM;
	if (room > UINT16_MAX)
		room = UINT16_MAX;
	count = p->ports * p->options.queues * 2 * ring + p->lcores * (CACHE + 2 * BURST_MAX);
	if (p->options.stages)
		count += p->lcores * 2 * STAGE_RING;
	p->pool = rte_pktmbuf_pool_create("dray-vnf", count, CACHE, 0, (uint16_t)room,
					  (int)rte_socket_id());
	if (p->pool)
		return 0;
	fprintf(stderr,
		"dray-vnf: no memory for %u packets of %u bytes (%s): give EAL a larger -m, or "
		"take fewer --descriptors\n",
		count, room, rte_strerror(rte_errno));
	return -1;
}

static int configure(struct program *p, unsigned i)
{
	uint16_t id = p->device[i], queues = (uint16_t)p->options.queues;
	uint16_t rx = (uint16_t)p->options.descriptors, tx = rx;
	struct rte_eth_conf conf = {.rxmode = {.mtu = p->function.port[i].mtu}};
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(id, &info);

	if (ret < 0)
		return failed(p, i, "reading what it can do", ret);
	if (queues > info.max_rx_queues || queues > info.max_tx_queues) {
		fprintf(stderr,
			"dray-vnf: %s: it has %u receive and %u transmit queues: take fewer "
			"--queues than %u\n",
			p->names[i].name, info.max_rx_queues, info.max_tx_queues, queues);
		return -1;
	}
	if (p->options.mtu_of & 1u << i &&
	    (conf.rxmode.mtu < info.min_mtu || conf.rxmode.mtu > info.max_mtu)) {
		fprintf(stderr, "dray-vnf: %s: --mtu has to be from %u to %u there\n",
			p->names[i].name, info.min_mtu, info.max_mtu);
		return -1;
	}
	/*
	 * net_virtio_user needs this to handle the end of a switch: without it, the port stays
	 * dead, or EAL panics.
	 */
	conf.intr_conf.lsc = info.dev_flags && (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
	ret = rte_eth_dev_configure(id, queues, queues, &conf);
	if (ret == 0)
		ret = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx, &tx);
	for (uint16_t q = 0; ret == 0 && q < queues; q++) {
		ret = rte_eth_rx_queue_setup(id, q, rx, rte_socket_id(), NULL, p->pool);
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(id, q, tx, rte_socket_id(), NULL);
	}
	return ret < 0 ? failed(p, i, "setting up its queues", ret) : 0;
}

static int start(struct program *p, unsigned i)
{
	int ret = rte_eth_dev_start(p->device[i]);

	if (ret < 0)
		return failed(p, i, "starting it", ret);
	/*
	 * A function that is no router also takes frames for other addresses. Drivers without
	 * this setting always do.
	 */
	if (p->options.mode == MODE_NONE || p->options.mode == MODE_L2FWD ||
	    p->options.mode == MODE_LB || p->options.mode == MODE_SESSION) {
		ret = rte_eth_promiscuous_enable(p->device[i]);
		if (ret < 0 && ret != -ENOTSUP)
			return failed(p, i, "receiving what is for others", ret);
	}
	return 0;
}

int ports_open(struct program *p)
{
	for (unsigned i = 0; i < p->ports; i++)
		if (read_setup(p, i) < 0)
			return -1;
	p->function.ports = p->ports;
	if (make_pool(p) < 0)
		return -1;
	for (unsigned i = 0; i < p->ports; i++)
		if (configure(p, i) < 0 || start(p, i) < 0)
			return -1;
	return 0;
}

void ports_close(struct program *p)
{
	for (unsigned i = 0; i < p->ports && i < PORTS_MAX; i++) {
		rte_eth_dev_stop(p->device[i]);
		rte_eth_dev_close(p->device[i]);
	}
	rte_mempool_free(p->pool);
}
