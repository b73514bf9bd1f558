/* SPDX-License-Identifier: Apache-2.0 */
/* Setting queues up, and taking them down. */
#include <errno.h>
#include <rte_malloc.h>

#include "driver.h"
#include "leases.h"
#include "pool.h"

/* The first values of four fields of a queue's mbufs. */
static uint64_t rearm_of(const struct rte_eth_dev *dev)
{
	struct rte_mbuf m = {
		.data_off = RTE_PKTMBUF_HEADROOM, .nb_segs = 1, .port = dev->data->port_id};
	uint64_t word;

	rte_mbuf_refcnt_set(&m, 1);
	memcpy(&word, (const char *)&m + offsetof(struct rte_mbuf, data_off), sizeof(word));
	return word;
}

static int check_room(const struct rte_eth_dev *dev, const struct dray_rxq *q)
{
	const uint32_t frame = dev->data->mtu + DRAY_FRAME_BYTES;

	if (q->lend || q->scatter || q->room >= frame)
		return 0;
	DRAY_LOG(ERR,
		 "%s: frames of %u bytes do not fit into mbufs of %s, which take %u: make the "
		 "mbufs larger, or enable RTE_ETH_RX_OFFLOAD_SCATTER\n",
		 dev->data->name, frame, q->pool->name, q->room);
	return -EINVAL;
}

int dray_rxq_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors,
		   unsigned int socket, const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	const uint64_t offloads = conf->offloads | dev->data->dev_conf.rxmode.offloads;
	struct dray_device *device = dev->data->dev_private;
	const struct dray_arguments *a = &device->arguments;
	uint32_t room = rte_pktmbuf_data_room_size(pool);
	struct dray_rxq *q = rte_zmalloc_socket("dray_rxq", sizeof(*q), DRAY_APART, (int)socket);
	int ret;

	if (!q)
		return -ENOMEM;
	q->device = device;
	q->pool = pool;
	q->queue = queue;
	q->descriptors = descriptors;
	q->conf = *conf;
	q->room = room > RTE_PKTMBUF_HEADROOM ? (uint16_t)(room - RTE_PKTMBUF_HEADROOM) : 0;
	q->rearm = rearm_of(dev);
	q->bindable = pool_is_ours(pool);
	/* If the pool's mbufs have buffers of their own, nothing can be attached to them. */
	if (q->bindable || (rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF))
		q->flags = RTE_MBUF_F_EXTERNAL;
	q->lend = a->rx_copy != UINT32_MAX && a->rx_hold > 0 && !q->flags;
	q->copy_max = RTE_MIN(a->rx_copy, (uint32_t)q->room);
	q->hold = &device->hold;
	q->scatter = (offloads & RTE_ETH_RX_OFFLOAD_SCATTER) && q->room > 0;
	q->strip = offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	q->epoll = -1;
	ret = check_room(dev, q);
	if (ret) {
		rte_free(q);
		return ret;
	}
	dev->data->rx_queues[queue] = q;
	return 0;
}

void dray_rxq_forget(struct dray_rxq *q)
{
	dray_release(q->pending, q->pending_count);
	q->pending_count = 0;
	q->port = NULL;
	q->leases = NULL;
}

void dray_rxq_release(struct rte_eth_dev *dev, uint16_t queue)
{
	struct dray_rxq *q = dev->data->rx_queues[queue];

	if (!q)
		return;
	dray_rxq_forget(q);
	rte_free(q);
	dev->data->rx_queues[queue] = NULL;
}

int dray_txq_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors,
		   unsigned int socket, const struct rte_eth_txconf *conf)
{
	struct dray_txq *q = rte_zmalloc_socket("dray_txq", sizeof(*q), DRAY_APART, (int)socket);

	if (!q)
		return -ENOMEM;
	q->device = dev->data->dev_private;
	q->queue = queue;
	q->descriptors = descriptors;
	q->conf = *conf;
	q->vlan = (conf->offloads | dev->data->dev_conf.txmode.offloads) &
		  RTE_ETH_TX_OFFLOAD_VLAN_INSERT;
	dev->data->tx_queues[queue] = q;
	return 0;
}

void dray_txq_release(struct rte_eth_dev *dev, uint16_t queue)
{
	rte_free(dev->data->tx_queues[queue]);
	dev->data->tx_queues[queue] = NULL;
}

/* The leases of a queue stay while the port is open: the application may still have some. */
static struct leases *leases_of(struct opened *opened, const struct dray_rxq *q)
{
	if (!opened->leases[q->queue])
		opened->leases[q->queue] = leases_new(opened, q->device->arguments.rx_hold);
	return opened->leases[q->queue];
}

int dray_queues_attach(struct rte_eth_dev *dev)
{
	struct dray_device *device = dev->data->dev_private;

	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++) {
		struct dray_rxq *q = dev->data->rx_queues[i];

		q->port = device->opened->port;
		q->leases = leases_of(device->opened, q);
		if (!q->leases)
			return -ENOMEM;
	}
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		((struct dray_txq *)dev->data->tx_queues[i])->port = device->opened->port;
	return 0;
}
