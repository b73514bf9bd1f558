/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and configuring the device of a dpdk port. */
#include "dpdk_setup.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>

#include "dpdk_eal.h"
#include "dpdk_memory.h"
#include "units.h"

#define ETHERNET 14u
#define TAGS 8u	       /* two VLAN tags, which a peer may send */
#define OWN_HEADER 16u /* of a driver before the frame, at most: virtio's has 12 bytes */
/*
 * Packets outside the device's descriptor rings: in a cache, in use, and in the driver's other
 * rings.
 */
#define OWN_PACKETS 1536u
#define CACHE 256u
#define DESCRIPTORS 1024u /* of a queue, if the driver has no preference */

static bool find(struct io_dpdk *p, const char *name, struct io_error *error)
{
	char found[160] = "none";
	size_t at = 0;
	uint64_t number;
	uint16_t id;

	if (rte_eth_dev_get_port_by_name(name, &p->port) == 0)
		return true;
	if (units_number(name, &number) && number < RTE_MAX_ETHPORTS &&
	    rte_eth_dev_is_valid_port((uint16_t)number)) {
		p->port = (uint16_t)number;
		return true;
	}
	RTE_ETH_FOREACH_DEV (id) {
		char device[RTE_ETH_NAME_MAX_LEN];

		if (rte_eth_dev_get_name_by_port(id, device) == 0 && at < sizeof(found))
			at += (size_t)snprintf(found + at, sizeof(found) - at, "%s%s",
					       at ? ", " : "", device);
	}
	return io_fail(error, "dpdk:%s: no such device; EAL found %s%s%s", name, found,
		       *dpdk_eal_complaint() ? ", and said: " : "", dpdk_eal_complaint());
}

static int set_up_queues(struct io_dpdk *p, uint16_t rx, uint16_t tx)
{
	int socket = rte_eth_dev_socket_id(p->port), ret = 0;

	for (uint16_t q = 0; q < p->queues && ret == 0; q++) {
		ret = rte_eth_rx_queue_setup(p->port, q, rx, (unsigned)socket, NULL, p->pool);
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(p->port, q, tx, (unsigned)socket, NULL);
	}
	return ret;
}

/* One segment holds the largest frame. */
static int make_pool(struct io_dpdk *p, const struct options *o, unsigned descriptors)
{
	uint32_t room = o->mtu + ETHERNET + TAGS + OWN_HEADER;
	char name[RTE_MEMPOOL_NAMESIZE];

	if (room < 2048)
		room = 2048;
	room += RTE_PKTMBUF_HEADROOM;
	if (room > UINT16_MAX)
		room = UINT16_MAX;
	/* Names are shared with all other processes of this EAL. */
	snprintf(name, sizeof(name), "draygen-%d-%u", (int)getpid(), p->port);
	p->pool = rte_pktmbuf_pool_create(name, descriptors + OWN_PACKETS, CACHE, 0, (uint16_t)room,
					  rte_eth_dev_socket_id(p->port));
	p->io.frame_max = o->mtu + ETHERNET < room - RTE_PKTMBUF_HEADROOM
				  ? o->mtu + ETHERNET
				  : room - RTE_PKTMBUF_HEADROOM;
	return p->pool ? 0 : -ENOMEM;
}

/*
 * The MTU to set. Some drivers state a limit that they do not have (net_memif: 1500), and refuse a
 * larger one; whether the device takes longer frames shows when they are sent.
 */
static uint32_t possible_mtu(struct io_dpdk *p, uint32_t mtu)
{
	const uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(p->port, &info) != 0)
		return mtu;
	if (mtu > info.max_mtu)
		mtu = info.max_mtu;
	return info.max_rx_pktlen > overhead && mtu > info.max_rx_pktlen - overhead
		       ? info.max_rx_pktlen - overhead
		       : mtu;
}

/*
 * The length of the rings. net_af_xdp sends almost nothing if it is not the preferred one.
 */
static void choose_descriptors(struct io_dpdk *p, const struct options *o, uint16_t *rx,
			       uint16_t *tx)
{
	struct rte_eth_dev_info info;

	*rx = *tx = (uint16_t)(o->descriptors ? o->descriptors : DESCRIPTORS);
	if (o->descriptors || rte_eth_dev_info_get(p->port, &info) != 0)
		return;
	if (info.default_rxportconf.ring_size)
		*rx = info.default_rxportconf.ring_size;
	if (info.default_txportconf.ring_size)
		*tx = info.default_txportconf.ring_size;
}

static int configure(struct io_dpdk *p, const struct options *o, const char **what)
{
	struct rte_eth_conf conf = {.rxmode.mtu = possible_mtu(p, o->mtu)};
	struct rte_eth_dev_info info;
	uint16_t rx, tx;
	int ret;

	/* net_virtio_user needs this to handle the end of a switch: without it, EAL panics. */
	if (rte_eth_dev_info_get(p->port, &info) == 0 && info.dev_flags)
		conf.intr_conf.lsc = (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
	*what = "it refuses so many queues";
	ret = rte_eth_dev_configure(p->port, p->queues, p->queues, &conf);
	if (ret < 0)
		return ret;
	p->configured = true;
	choose_descriptors(p, o, &rx, &tx);
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(p->port, &rx, &tx);
	if (ret < 0)
		return ret;
	*what = "too little memory for its packets: more for EAL (-m), fewer --descriptors, or a "
		"smaller --mtu";
	ret = make_pool(p, o, (unsigned)(rx + tx) * p->queues);
	if (ret < 0)
		return ret;
	*what = "its queues could not be set up";
	return set_up_queues(p, rx, tx);
}

/* net_memif is one by default. */
static bool is_client(const struct rte_eth_dev_info *info)
{
	const struct rte_devargs *given = rte_dev_devargs(info->device);
	const char *arguments = given && given->args ? given->args : "";

	return strcmp(info->driver_name, "net_memif") == 0 && !strstr(arguments, "role=server") &&
	       !strstr(arguments, "role=master");
}

/* Its name, and the source addresses of its frames. */
static void look_up(struct io_dpdk *p, const struct options *o)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;

	if (rte_eth_dev_info_get(p->port, &info) == 0) {
		p->driver = info.driver_name;
		p->calls = is_client(&info);
	}
	if (rte_eth_macaddr_get(p->port, &mac) == 0)
		memcpy(p->io.address.from_mac, mac.addr_bytes, 6);
	if (o->from_given && address_is6(&o->from))
		memcpy(p->io.address.from_ip, &o->from.v6.sin6_addr, 16);
	else if (o->from_given)
		memcpy(p->io.address.from_ip, &o->from.v4.sin_addr, 4);
	/* Some drivers have no such setting, and receive all frames anyway. */
	(void)rte_eth_promiscuous_enable(p->port);
}

bool dpdk_set_up(struct io_dpdk *p, const struct options *o, const char *name,
		 struct io_error *error)
{
	const char *what;
	int ret;

	p->has_eal = dpdk_eal_start(o, error);
	if (!p->has_eal || !find(p, name, error))
		return false;
	ret = configure(p, o, &what);
	if (ret < 0) {
		io_fail(error, "dpdk:%s: %s (%s)", name, what, rte_strerror(-ret));
		return false;
	}
	io_set_destination(&p->io, o);
	look_up(p, o);
	dpdk_memory_keep();
	return true;
}
