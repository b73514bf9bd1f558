/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_mpring: two rings (rte_ring) between a primary process of EAL and a secondary one, as an
 * ethdev in each. Packets are passed as pointers, since the two share all of EAL's memory: nothing
 * is copied, and nothing is checked. Each end has a device with its own name; net_ring would have
 * one device for both.
 */
#include "mpring.h"

#include "pool.h"

#include <errno.h>
#include <ethdev_vdev.h>
#include <rte_malloc.h>
#include <rte_memzone.h>
#include <rte_ring.h>

#define SLOTS 1024u
#define BURST 32u
#define MTU_MAX 9216u
#define FRAME_BYTES 18u /* of a frame beyond its MTU: header and one VLAN tag */

RTE_LOG_REGISTER_DEFAULT(mpring_log_type, NOTICE);

/* The shared part, in a memory zone of the primary process that the secondary looks up by name. */
struct shared {
	struct rte_ring *to_secondary, *to_primary;
	struct rte_ether_addr mac[2];
	/* The primary's mempool drivers, by their numbers there. */
	char pools[RTE_MEMPOOL_MAX_OPS_IDX][RTE_MEMPOOL_OPS_NAMESIZE];
	/* its device is in the table of ports, and only the primary can remove it */
	uint32_t had_secondary;
};

struct queue {
	struct rte_ring *ring;
	uint64_t packets, bytes, cleared_packets, cleared_bytes;
	uint16_t port;
} __rte_cache_aligned;

/* dev_private of the ethdev. */
struct device {
	struct queue rx, tx;
	struct shared *shared;
	struct mpring_peer peer;
};

static uint16_t receive(void *of, struct rte_mbuf **mbufs, uint16_t n)
{
	struct queue *q = of;
	uint16_t got = (uint16_t)rte_ring_sc_dequeue_burst(q->ring, (void **)mbufs, n, NULL);
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < got; i++)
		rte_prefetch0(mbufs[i]);
	for (uint16_t i = 0; i < got; i++) {
		struct rte_mbuf *m = mbufs[i];

		/* The sender's offload flags and port mean nothing here. */
		m->port = q->port;
		m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
		m->packet_type = 0;
		bytes += m->pkt_len;
	}
	q->packets += got;
	q->bytes += bytes;
	return got;
}

static uint16_t transmit(void *of, struct rte_mbuf **mbufs, uint16_t n)
{
	struct queue *q = of;
	uint64_t bytes = 0;
	uint16_t sent;

	/* there can only be more room than that: the other process takes packets out */
	n = RTE_MIN(n, (uint16_t)rte_ring_free_count(q->ring));
	for (uint16_t i = 0; i < n; i++)
		bytes += mbufs[i]->pkt_len;
	sent = (uint16_t)rte_ring_sp_enqueue_burst(q->ring, (void **)mbufs, n, NULL);
	q->packets += sent;
	q->bytes += bytes;
	return sent;
}

static int link_update(struct rte_eth_dev *dev, int wait)
{
	struct device *d = dev->data->dev_private;
	struct rte_eth_link link = {
		.link_speed = RTE_ETH_SPEED_NUM_100G,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_autoneg = RTE_ETH_LINK_FIXED,
		.link_status = dev->data->dev_started && mpring_peer_there(&d->peer)
				       ? RTE_ETH_LINK_UP
				       : RTE_ETH_LINK_DOWN,
	};

	(void)wait;
	return rte_eth_linkstatus_set(dev, &link);
}

static int configure(struct rte_eth_dev *dev)
{
	(void)dev;
	return 0;
}

static int start(struct rte_eth_dev *dev)
{
	struct device *d = dev->data->dev_private;
	int ret = mpring_peer_start(&d->peer);

	if (ret) {
		MPRING_LOG(ERR, "%s: socket %s: %s\n", dev->data->name, d->peer.socket,
			   strerror(-ret));
		return ret;
	}
	dev->rx_pkt_burst = receive;
	dev->tx_pkt_burst = transmit;
	dev->data->rx_queue_state[0] = dev->data->tx_queue_state[0] = RTE_ETH_QUEUE_STATE_STARTED;
	return 0;
}

static int stop(struct rte_eth_dev *dev)
{
	struct device *d = dev->data->dev_private;

	mpring_peer_stop(&d->peer);
	dev->data->dev_started = 0;
	dev->data->rx_queue_state[0] = dev->data->tx_queue_state[0] = RTE_ETH_QUEUE_STATE_STOPPED;
	return 0;
}

/* The rings stay, since the other process may be using one. They are freed with EAL's memory. */
static int close_device(struct rte_eth_dev *dev)
{
	struct device *d = dev->data->dev_private;

	mpring_peer_close(&d->peer);
	dev->data->mac_addrs = NULL; /* in the shared part */
	return 0;
}

static int get_info(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	(void)dev;
	info->max_mac_addrs = 1;
	info->min_mtu = RTE_ETHER_MIN_MTU;
	info->max_mtu = MTU_MAX;
	info->max_rx_pktlen = MTU_MAX + FRAME_BYTES;
	info->max_rx_queues = info->max_tx_queues = 1;
	info->tx_offload_capa = info->tx_queue_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	info->rx_offload_capa = info->rx_queue_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER;
	info->default_rxportconf = info->default_txportconf = (struct rte_eth_dev_portconf){
		.burst_size = BURST, .ring_size = SLOTS, .nb_queues = 1};
	return 0;
}

/* There is no limit on a frame's length: the sender's mbufs are passed as they are. */
static int set_mtu(struct rte_eth_dev *dev, uint16_t mtu)
{
	(void)dev;
	return mtu <= MTU_MAX ? 0 : -EINVAL;
}

static int receive_all(struct rte_eth_dev *dev)
{
	(void)dev;
	return 0;
}

/* The receiver's pool is not used: packets stay in the sender's mbufs. */
static int set_up_rx(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors,
		     unsigned int socket, const struct rte_eth_rxconf *conf,
		     struct rte_mempool *pool)
{
	struct device *d = dev->data->dev_private;

	(void)descriptors, (void)socket, (void)conf, (void)pool;
	dev->data->rx_queues[queue] = &d->rx;
	return 0;
}

static int set_up_tx(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors,
		     unsigned int socket, const struct rte_eth_txconf *conf)
{
	struct device *d = dev->data->dev_private;

	(void)descriptors, (void)socket, (void)conf;
	dev->data->tx_queues[queue] = &d->tx;
	return 0;
}

static int get_stats(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	const struct device *d = dev->data->dev_private;

	stats->ipackets = stats->q_ipackets[0] = d->rx.packets - d->rx.cleared_packets;
	stats->ibytes = stats->q_ibytes[0] = d->rx.bytes - d->rx.cleared_bytes;
	stats->opackets = stats->q_opackets[0] = d->tx.packets - d->tx.cleared_packets;
	stats->obytes = stats->q_obytes[0] = d->tx.bytes - d->tx.cleared_bytes;
	return 0;
}

static int clear_stats(struct rte_eth_dev *dev)
{
	struct device *d = dev->data->dev_private;

	d->rx.cleared_packets = d->rx.packets;
	d->rx.cleared_bytes = d->rx.bytes;
	d->tx.cleared_packets = d->tx.packets;
	d->tx.cleared_bytes = d->tx.bytes;
	return 0;
}

static const struct eth_dev_ops ops = {
	.dev_configure = configure,
	.dev_start = start,
	.dev_stop = stop,
	.dev_close = close_device,
	.dev_infos_get = get_info,
	.link_update = link_update,
	.mtu_set = set_mtu,
	.promiscuous_enable = receive_all,
	.promiscuous_disable = receive_all,
	.allmulticast_enable = receive_all,
	.allmulticast_disable = receive_all,
	.rx_queue_setup = set_up_rx,
	.tx_queue_setup = set_up_tx,
	.stats_get = get_stats,
	.stats_reset = clear_stats,
};

static struct shared *find_shared(const struct mpring_arguments *a)
{
	const struct rte_memzone *zone;
	char name[RTE_MEMZONE_NAMESIZE];

	snprintf(name, sizeof(name), "mpring_%s", a->ring);
	zone = rte_memzone_lookup(name);
	return zone ? zone->addr : NULL;
}

/* In the primary: make the shared part, unless it had the device before. */
static struct shared *make_shared(const struct mpring_arguments *a, int socket)
{
	const struct rte_memzone *zone;
	char name[RTE_MEMZONE_NAMESIZE];
	struct shared *s = find_shared(a);

	if (s)
		return s;
	snprintf(name, sizeof(name), "mpring_%s", a->ring);
	zone = rte_memzone_reserve(name, sizeof(*s), socket, 0);
	if (!zone)
		return NULL;
	s = zone->addr;
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < rte_mempool_ops_table.num_ops; i++)
		memcpy(s->pools[i], rte_mempool_ops_table.ops[i].name, sizeof(s->pools[i]));
	snprintf(name, sizeof(name), "mpr_%s_out", a->ring);
	s->to_secondary = rte_ring_create(name, SLOTS, socket, RING_F_SP_ENQ | RING_F_SC_DEQ);
	snprintf(name, sizeof(name), "mpr_%s_in", a->ring);
	s->to_primary = rte_ring_create(name, SLOTS, socket, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (s->to_secondary && s->to_primary)
		return s;
	rte_ring_free(s->to_secondary);
	rte_ring_free(s->to_primary);
	(void)rte_memzone_free(zone);
	return NULL;
}

/*
 * A secondary process may have been killed in the middle of a burst. Packets that it took are lost;
 * packets that it had not published were never sent.
 */
static void take_over(struct shared *s)
{
	s->to_primary->prod.head = s->to_primary->prod.tail;
	s->to_secondary->cons.head = s->to_secondary->cons.tail;
}

/*
 * A pool has the number of its driver, and each process numbers the drivers in the order in which
 * it loads them, which depends on what it is linked to. So the secondary process takes over the
 * primary's numbers before it makes a pool. Otherwise an mbuf that one process frees into the
 * other's pool would go to the wrong driver.
 */
static int take_numbers(const struct shared *s)
{
	struct rte_mempool_ops_table *table = &rte_mempool_ops_table;
	struct rte_mempool_ops own[RTE_MEMPOOL_MAX_OPS_IDX], ordered[RTE_MEMPOOL_MAX_OPS_IDX];
	const uint32_t count = table->num_ops;
	uint32_t n = 0, last = 0;
	int own_index = -1;

	memcpy(own, table->ops, sizeof(own));
	/* drivers that only the primary has stay without a name */
	memset(ordered, 0, sizeof(ordered));
	while (n < RTE_MEMPOOL_MAX_OPS_IDX && s->pools[n][0])
		n++;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = 0;

		while (at < n && strcmp(s->pools[at], own[i].name) != 0)
			at++;
		while (at < RTE_MEMPOOL_MAX_OPS_IDX && ordered[at].name[0])
			at++;
		if (at == RTE_MEMPOOL_MAX_OPS_IDX)
			return -ENOSPC;
		ordered[at] = own[i];
		if (pool_ops_index == (int)i)
			own_index = (int)at;
		last = RTE_MAX(last, at + 1);
	}
	memcpy(table->ops, ordered, sizeof(ordered));
	table->num_ops = last;
	pool_ops_index = own_index;
	return 0;
}

/* The ethdev that a former secondary process had, or a new one. */
static struct rte_eth_dev *allocate(struct rte_vdev_device *vdev, struct shared *s, bool primary)
{
	struct rte_eth_dev *dev;

	if (primary || !s->had_secondary) {
		dev = rte_eth_vdev_allocate(vdev, sizeof(struct device));
		if (dev && !primary)
			s->had_secondary = 1;
		return dev;
	}
	take_over(s);
	dev = rte_eth_dev_attach_secondary(rte_vdev_device_name(vdev));
	if (!dev)
		return NULL;
	dev->device = &vdev->device;
	dev->data->dev_started = 0;
	dev->data->dev_configured = 0;
	memset(dev->data->dev_private, 0, sizeof(struct device));
	return dev;
}

static int make_device(struct rte_vdev_device *vdev, const struct mpring_arguments *a)
{
	const bool primary = a->primary;
	struct shared *s = primary ? make_shared(a, rte_socket_id()) : find_shared(a);
	struct rte_eth_dev *dev;
	struct device *d;
	int ret;

	if (!s)
		return primary ? -ENOMEM : -ENOENT;
	ret = primary ? 0 : take_numbers(s);
	if (ret)
		return ret;
	dev = allocate(vdev, s, primary);
	if (!dev)
		return -ENOMEM;
	d = dev->data->dev_private;
	d->shared = s;
	d->rx.port = dev->data->port_id;
	d->rx.ring = primary ? s->to_primary : s->to_secondary;
	d->tx.ring = primary ? s->to_secondary : s->to_primary;
	s->mac[primary] = a->mac;
	dev->data->mac_addrs = &s->mac[primary];
	dev->data->promiscuous = 1;
	dev->dev_ops = &ops;
	dev->rx_pkt_burst = rte_eth_pkt_burst_dummy;
	dev->tx_pkt_burst = rte_eth_pkt_burst_dummy;
	ret = mpring_peer_open(&d->peer, a);
	if (ret) {
		dev->data->mac_addrs = NULL;
		rte_eth_dev_release_port(dev);
		return ret;
	}
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int probe(struct rte_vdev_device *vdev)
{
	const char *name = rte_vdev_device_name(vdev), *text = rte_vdev_device_args(vdev);
	const bool primary = rte_eal_process_type() == RTE_PROC_PRIMARY;
	struct mpring_arguments arguments;
	int ret;

	/* EAL shows a secondary process the devices of the primary one, without arguments. */
	if (!primary && (!text || !*text))
		return 0;
	ret = mpring_arguments_read(text, &arguments);
	if (ret)
		return ret;
	if (primary != arguments.primary) {
		MPRING_LOG(ERR, "%s: this process is %s: give EAL --proc-type=%s\n", name,
			   primary ? "a primary one" : "a secondary one",
			   arguments.primary ? "primary" : "secondary");
		return -EINVAL;
	}
	ret = make_device(vdev, &arguments);
	if (ret)
		MPRING_LOG(ERR, "%s: ring %s, socket %s: %s\n", name, arguments.ring,
			   arguments.socket, strerror(-ret));
	return ret;
}

static int remove_device(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (!dev)
		return 0;
	close_device(dev);
	return rte_eth_dev_release_port(dev);
}

static struct rte_vdev_driver net_mpring_driver = {.probe = probe, .remove = remove_device};

RTE_PMD_REGISTER_VDEV(net_mpring, net_mpring_driver);
RTE_PMD_REGISTER_PARAM_STRING(net_mpring,
			      "role=primary|secondary socket=<path> mac=<address> ring=<name>");
