/* SPDX-License-Identifier: Apache-2.0 */
/* The ethdev: probing, configuring, starting, closing. */
#include <errno.h>
#include <ethdev_vdev.h>
#include <rte_version.h>
#include <time.h>

#include "driver.h"
#include "leases.h"
#include "pool.h"

#define BUSY_MS 3000 /* how long a port may still appear to be open elsewhere */
#define RETRY_MS 10

#define RX_OFFLOADS                                                                                \
	(RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_RSS_HASH)
#define TX_OFFLOADS (RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_VLAN_INSERT)

RTE_LOG_REGISTER_DEFAULT(dray_log_type, NOTICE);

/* Open the port. A broker may not have noticed yet that its last application is gone. */
static int open_free(const char *name, const struct dray_options *options, struct opened **opened)
{
	const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000};
	int ret = -EBUSY;

	for (int ms = 0; ms < BUSY_MS; ms += RETRY_MS) {
		ret = opened_new(name, options, opened);
		if (ret != -EBUSY)
			break;
		nanosleep(&pause, NULL);
	}
	return ret;
}

static int open_port(struct dray_device *device, uint32_t queues, uint32_t mode)
{
	const struct dray_arguments *a = &device->arguments;
	struct dray_options options = {
		.size = sizeof(options),
		.directory = a->directory[0] ? a->directory : NULL,
		.queues = queues,
		.mode = mode,
	};
	int ret = open_free(a->port, &options, &device->opened);

	if (ret)
		return ret;
	device->info.size = sizeof(device->info);
	(void)dray_info(device->opened->port, &device->info);
	device->opened_queues = queues;
	device->opened_mode = mode;
	memset(&device->stats_cleared, 0, sizeof(device->stats_cleared));
	return 0;
}

static void close_port(struct dray_device *device)
{
	struct rte_eth_dev *dev = device->ethdev;

	if (!device->opened)
		return;
	dray_link_unwatch(device);
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++)
		if (dev->data->rx_queues[i])
			dray_rxq_forget(dev->data->rx_queues[i]);
	pool_forget(device->opened);
	memset(device->link_queues, 0, DRAY_MAX_QUEUES * sizeof(*device->link_queues));
	opened_close(device->opened);
	device->opened = NULL;
}

/*
 * Open the port again, for another number of queues or another mode: dray_open negotiates both.
 */
static int reopen_port(struct dray_device *device, uint32_t queues, uint32_t mode)
{
	int ret;

	close_port(device);
	ret = open_port(device, queues, mode);
	if (ret)
		return ret;
	ret = dray_link_watch(device);
	if (ret) {
		opened_close(device->opened);
		device->opened = NULL;
	}
	return ret;
}

static int configure(struct rte_eth_dev *dev)
{
	struct dray_device *device = dev->data->dev_private;
	const uint32_t mode =
		dev->data->dev_conf.intr_conf.rxq ? DRAY_MODE_ADAPTIVE : DRAY_MODE_BUSY;
	uint32_t queues = dev->data->nb_rx_queues;
	int ret = 0;

	/* The peer sends to as many queues as are polled here. */
	if (queues == 0)
		queues = RTE_MIN((uint32_t)dev->data->nb_tx_queues, device->info.queues);
	if (!device->opened || queues != device->opened_queues || mode != device->opened_mode)
		ret = reopen_port(device, queues, mode);
	if (ret)
		DRAY_LOG(ERR, "%s: port %s: %s\n", dev->data->name, device->arguments.port,
			 dray_strerror(ret));
	return ret;
}

static void set_queue_states(struct rte_eth_dev *dev, uint8_t state)
{
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++)
		dev->data->rx_queue_state[i] = state;
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		dev->data->tx_queue_state[i] = state;
}

static int start(struct rte_eth_dev *dev)
{
	struct dray_device *device = dev->data->dev_private;
	int ret;

	if (!device->opened)
		return -ENODEV; /* configure has failed */
	ret = dray_queues_attach(dev);
	if (ret == 0)
		ret = dray_interrupts_start(dev);
	if (ret)
		return ret;
	dev->rx_pkt_burst = dray_rx_choose(dev);
	dev->tx_pkt_burst = dray_tx_choose(dev);
	set_queue_states(dev, RTE_ETH_QUEUE_STATE_STARTED);
	return dray_link_update(dev, 0);
}

static int stop(struct rte_eth_dev *dev)
{
	dray_interrupts_stop(dev);
	set_queue_states(dev, RTE_ETH_QUEUE_STATE_STOPPED);
	return 0;
}

static int close_device(struct rte_eth_dev *dev)
{
	struct dray_device *device = dev->data->dev_private;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return 0;
	dray_interrupts_stop(dev);
	close_port(device);
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++)
		dray_rxq_release(dev, i);
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		dray_txq_release(dev, i);
	rte_free(device->link_queues);
	device->link_queues = NULL;
	dev->data->mac_addrs = NULL; /* in dev_private */
	return 0;
}

static int get_info(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct dray_device *device = dev->data->dev_private;

	info->max_mac_addrs = 1;
	info->min_mtu = RTE_ETHER_MIN_MTU;
	info->max_mtu = (uint16_t)device->info.mtu;
	info->max_rx_pktlen = device->info.mtu + DRAY_FRAME_BYTES;
	info->max_rx_queues = (uint16_t)device->info.queues;
	info->max_tx_queues = DRAY_TX_QUEUES;
	info->rx_offload_capa = info->rx_queue_offload_capa = RX_OFFLOADS;
	info->tx_offload_capa = info->tx_queue_offload_capa = TX_OFFLOADS;
	info->speed_capa = RTE_ETH_LINK_SPEED_100G;
	info->default_rxportconf = info->default_txportconf = (struct rte_eth_dev_portconf){
		.burst_size = DRAY_BURST, .ring_size = 512, .nb_queues = 1};
	return 0;
}

/* The link sets the MTU: frames up to it pass, whatever MTU the application sets. */
static int set_mtu(struct rte_eth_dev *dev, uint16_t mtu)
{
	const struct dray_device *device = dev->data->dev_private;

	return mtu <= device->info.mtu ? 0 : -EINVAL;
}

/* A link has two ends and no filter: everything that the peer sends is received. */
static int receive_all(struct rte_eth_dev *dev)
{
	(void)dev;
	return 0;
}

static void get_rxq(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_rxq_info *info)
{
	const struct dray_rxq *q = dev->data->rx_queues[queue];

	info->mp = q->pool;
	info->conf = q->conf;
	info->scattered_rx = q->scatter;
	info->nb_desc = q->descriptors;
}

static void get_txq(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_txq_info *info)
{
	const struct dray_txq *q = dev->data->tx_queues[queue];

	info->conf = q->conf;
	info->nb_desc = q->descriptors;
}

const struct eth_dev_ops dray_ops = {
	.dev_configure = configure,
	.dev_start = start,
	.dev_stop = stop,
	.dev_close = close_device,
	.dev_infos_get = get_info,
	.link_update = dray_link_update,
	.mtu_set = set_mtu,
	.promiscuous_enable = receive_all,
	.promiscuous_disable = receive_all,
	.allmulticast_enable = receive_all,
	.allmulticast_disable = receive_all,
	.rx_queue_setup = dray_rxq_setup,
	.rx_queue_release = dray_rxq_release,
	.tx_queue_setup = dray_txq_setup,
	.tx_queue_release = dray_txq_release,
	.rxq_info_get = get_rxq,
	.txq_info_get = get_txq,
	.rx_burst_mode_get = dray_rx_mode,
	.tx_burst_mode_get = dray_tx_mode,
	.rx_queue_intr_enable = dray_rx_interrupt_enable,
	.rx_queue_intr_disable = dray_rx_interrupt_disable,
	.stats_get = dray_stats_get,
	.stats_reset = dray_stats_reset,
	.xstats_get = dray_xstats_get,
	.xstats_get_names = dray_xstats_get_names,
	.xstats_reset = dray_stats_reset,
};

static int make_device(struct rte_eth_dev *dev, const struct dray_arguments *arguments)
{
	struct dray_device *device = dev->data->dev_private;
	int ret;

	device->ethdev = dev;
	device->arguments = *arguments;
	device->link_queues = rte_zmalloc_socket("dray_link_queues",
						 DRAY_MAX_QUEUES * sizeof(*device->link_queues),
						 DRAY_APART, dev->data->numa_node);
	if (!device->link_queues)
		return -ENOMEM;
	ret = open_port(device, 0, DRAY_MODE_BUSY);
	if (ret)
		return ret;
	device->opened_queues = device->info.queues;
	device->hold = arguments->rx_hold;
	memcpy(device->mac.addr_bytes, device->info.mac, RTE_ETHER_ADDR_LEN);
	dev->data->mac_addrs = &device->mac;
	dev->data->promiscuous = 1;
	dev->data->dev_flags = RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS | RTE_ETH_DEV_INTR_LSC;
	dev->dev_ops = &dray_ops;
	dev->rx_pkt_burst = rte_eth_pkt_burst_dummy;
	dev->tx_pkt_burst = rte_eth_pkt_burst_dummy;
	ret = dray_link_watch(device);
	if (ret)
		opened_close(device->opened);
	return ret;
}

static int probe(struct rte_vdev_device *vdev)
{
	const char *name = rte_vdev_device_name(vdev);
	struct dray_arguments arguments;
	struct rte_eth_dev *dev;
	int ret;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		DRAY_LOG(ERR,
			 "%s: a secondary process cannot share a port: give it one of its own\n",
			 name);
		return -ENOTSUP;
	}
	ret = dray_arguments_read(rte_vdev_device_args(vdev), &arguments);
	if (ret)
		return ret;
	leases_begin();
	dev = rte_eth_vdev_allocate(vdev, sizeof(struct dray_device));
	if (!dev)
		return -ENOMEM;
	ret = make_device(dev, &arguments);
	if (ret) {
		DRAY_LOG(ERR, "%s: port %s in %s: %s\n", name, arguments.port,
			 arguments.directory[0] ? arguments.directory
						: "$DRAY_PORTS or /run/dray/ports",
			 dray_strerror(ret));
		rte_free(((struct dray_device *)dev->data->dev_private)->link_queues);
		dev->data->mac_addrs = NULL;
		rte_eth_dev_release_port(dev);
		return ret;
	}
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int remove_device(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (!dev)
		return 0;
	close_device(dev);
	return rte_eth_dev_release_port(dev);
}

static struct rte_vdev_driver net_dray_driver = {.probe = probe, .remove = remove_device};

RTE_PMD_REGISTER_VDEV(net_dray, net_dray_driver);
RTE_PMD_REGISTER_PARAM_STRING(
	net_dray, "port=<name> dir=<path> rx=zero-copy|copy rx-copy-max=<bytes> rx-hold=<frames>");
