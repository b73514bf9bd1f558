/* SPDX-License-Identifier: Apache-2.0 */
/* net_memif with frames longer than 1518 bytes. DPDK's driver passes a frame of any length, in
 * several of its buffers if need be, but has no operation that sets the MTU, so an application that
 * asks for one gives up. This file adds the operation to each of its devices, before the
 * application sees them. */
#include <bus_driver.h>
#include <dev_driver.h>
#include <ethdev_driver.h>
#include <errno.h>
#include <string.h>

#define MEMIF "net_memif"
#define MTU_MAX 9216
#define FRAME_BYTES (RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN)

static const struct eth_dev_ops *stock;
static struct eth_dev_ops longer;

static int get_info(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	int ret = stock->dev_infos_get(dev, info);

	info->max_mtu = MTU_MAX;
	info->max_rx_pktlen = MTU_MAX + FRAME_BYTES;
	return ret;
}

/* There is nothing to set: the driver asks no frame how long it is. */
static int set_mtu(struct rte_eth_dev *dev, uint16_t mtu)
{
	(void)dev;
	return mtu <= MTU_MAX ? 0 : -EINVAL;
}

/* A new device of net_memif gets the operation, unless its driver has it by now. */
static int on_new_device(uint16_t id, enum rte_eth_event_type event, void *argument, void *result)
{
	struct rte_eth_dev *dev = &rte_eth_devices[id];

	(void)event, (void)argument, (void)result;
	if (strncmp(dev->data->name, MEMIF, strlen(MEMIF)) != 0 || dev->dev_ops->mtu_set)
		return 0;
	stock = dev->dev_ops;
	longer = *stock;
	longer.dev_infos_get = get_info;
	longer.mtu_set = set_mtu;
	dev->dev_ops = &longer;
	return 0;
}

static int scan(void)
{
	return 0;
}

static int probe(void)
{
	return rte_eth_dev_callback_register(RTE_ETH_ALL, RTE_ETH_EVENT_NEW, on_new_device, NULL);
}

static struct rte_device *find_device(const struct rte_device *start, rte_dev_cmp_t compare,
				      const void *data)
{
	(void)start, (void)compare, (void)data;
	return NULL;
}

/* A bus without devices: EAL probes it once memory can be allocated, and before it makes virtual
 * devices. Earlier, no callback can be registered. */
static struct rte_bus bus = {.scan = scan, .probe = probe, .find_device = find_device};

RTE_REGISTER_BUS(dray_memif, bus);
