/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics: the ethdev's, and the driver's and libdray's own, by name. */
#include <errno.h>

#include "driver.h"

enum source { OF_RX, OF_TX, OF_LIBRARY, OF_LINK, NOW };

#define LIBRARY(member) offsetof(struct dray_stats, member)
#define LINK(member) offsetof(struct dray_link_counts, member)
#define VIOLATION(kind) LIBRARY(violations[kind])
enum now { NOW_HELD, NOW_MAPS, NOW_GENERATION, NOW_BROKER };

static const struct {
	const char *name;
	enum source source;
	size_t which; /* counter, or offset */
} table[] = {
	{"rx_zero_copy_packets", OF_RX, RX_IN_PLACE},
	{"rx_over_hold_packets", OF_RX, RX_HELD},
	{"rx_too_long_errors", OF_RX, RX_TOO_LONG},
	{"rx_quota_dropped", OF_LIBRARY, LIBRARY(rx_dropped)},
	{"rx_quota_copied", OF_LIBRARY, LIBRARY(rx_copied)},
	{"tx_zero_copy_packets", OF_TX, TX_IN_PLACE},
	{"tx_old_generation_packets", OF_TX, TX_OLD},
	{"tx_too_long_errors", OF_TX, TX_TOO_LONG},
	{"tx_no_link_dropped", OF_TX, TX_NO_LINK},
	{"tx_dropped", OF_LIBRARY, LIBRARY(tx_dropped)},
	{"tx_no_buffer", OF_LIBRARY, LIBRARY(tx_no_buffer)},
	{"violation_ring_index", OF_LIBRARY, VIOLATION(DRAY_BAD_RING_INDEX)},
	{"violation_region", OF_LIBRARY, VIOLATION(DRAY_BAD_REGION)},
	{"violation_slot", OF_LIBRARY, VIOLATION(DRAY_BAD_SLOT)},
	{"violation_double", OF_LIBRARY, VIOLATION(DRAY_BAD_DOUBLE)},
	{"violation_bounds", OF_LIBRARY, VIOLATION(DRAY_BAD_BOUNDS)},
	{"violation_flags", OF_LIBRARY, VIOLATION(DRAY_BAD_FLAGS)},
	{"violation_stamp", OF_LIBRARY, VIOLATION(DRAY_BAD_STAMP)},
	{"violation_return_index", OF_LIBRARY, VIOLATION(DRAY_BAD_RETURN_INDEX)},
	{"violation_return_slot", OF_LIBRARY, VIOLATION(DRAY_BAD_RETURN_SLOT)},
	{"violation_return_forged", OF_LIBRARY, VIOLATION(DRAY_BAD_RETURN_FORGED)},
	{"violation_hold", OF_LIBRARY, VIOLATION(DRAY_BAD_HOLD)},
	{"violation_bell", OF_LIBRARY, VIOLATION(DRAY_BAD_BELL)},
	{"misuse", OF_LIBRARY, LIBRARY(misuse)},
	{"latency_samples", OF_LIBRARY, LIBRARY(stamps)},
	{"link_ups", OF_LINK, LINK(ups)},
	{"link_downs", OF_LINK, LINK(downs)},
	{"link_rebinds", OF_LINK, LINK(rebinds)},
	{"link_errors", OF_LINK, LINK(errors)},
	{"peer_holds", OF_LINK, LINK(peer_holds)},
	{"held_buffers", NOW, NOW_HELD},
	{"mapped_generations", NOW, NOW_MAPS},
	{"generation", NOW, NOW_GENERATION},
	{"broker_connected", NOW, NOW_BROKER},
};

static uint64_t rx_count(const struct rte_eth_dev *dev, uint16_t i, enum rx_counter which)
{
	const struct dray_rxq *q = dev->data->rx_queues[i];

	return q ? dray_counted(&q->counters[which]) - q->cleared[which] : 0;
}

static uint64_t tx_count(const struct rte_eth_dev *dev, uint16_t i, enum tx_counter which)
{
	const struct dray_txq *q = dev->data->tx_queues[i];

	return q ? dray_counted(&q->counters[which]) - q->cleared[which] : 0;
}

static uint64_t rx_sum(const struct rte_eth_dev *dev, enum rx_counter which)
{
	uint64_t sum = 0;

	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++)
		sum += rx_count(dev, i, which);
	return sum;
}

static uint64_t tx_sum(const struct rte_eth_dev *dev, enum tx_counter which)
{
	uint64_t sum = 0;

	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		sum += tx_count(dev, i, which);
	return sum;
}

static uint64_t at(const void *base, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
}

/* libdray's counters. */
static int library_stats(const struct dray_device *device, struct dray_stats *s)
{
	*s = (struct dray_stats){.size = sizeof(*s)};
	/* Without a port if configuring has failed to open it again. */
	return device->opened ? dray_stats(device->opened->port, DRAY_ALL_QUEUES, s) : -ENODEV;
}

int dray_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	const struct dray_device *device = dev->data->dev_private;
	const struct dray_stats *c = &device->stats_cleared;
	struct dray_stats s;
	int ret = library_stats(device, &s);

	if (ret)
		return ret;
	for (uint16_t i = 0; i < dev->data->nb_rx_queues && i < RTE_ETHDEV_QUEUE_STAT_CNTRS; i++) {
		stats->q_ipackets[i] = rx_count(dev, i, RX_PACKETS);
		stats->q_ibytes[i] = rx_count(dev, i, RX_BYTES);
		stats->q_errors[i] = rx_count(dev, i, RX_TOO_LONG);
	}
	for (uint16_t i = 0; i < dev->data->nb_tx_queues && i < RTE_ETHDEV_QUEUE_STAT_CNTRS; i++) {
		stats->q_opackets[i] = tx_count(dev, i, TX_PACKETS);
		stats->q_obytes[i] = tx_count(dev, i, TX_BYTES);
	}
	stats->ipackets = rx_sum(dev, RX_PACKETS);
	stats->ibytes = rx_sum(dev, RX_BYTES);
	/* What has left: a frame may wait in a queue of its traffic class, and be dropped there. */
	stats->opackets = s.tx_packets - c->tx_packets;
	stats->obytes = s.tx_bytes - c->tx_bytes;
	stats->imissed = s.rx_dropped - c->rx_dropped;
	stats->rx_nombuf = rx_sum(dev, RX_NO_MBUF);
	stats->ierrors = rx_sum(dev, RX_TOO_LONG);
	/* Only those that lost a frame: a refused buffer is no frame. */
	for (unsigned int kind = DRAY_BAD_REGION; kind <= DRAY_BAD_FLAGS; kind++)
		stats->ierrors += s.violations[kind] - c->violations[kind];
	stats->oerrors = tx_sum(dev, TX_TOO_LONG) + tx_sum(dev, TX_NO_LINK) + s.tx_dropped -
			 c->tx_dropped + s.misuse - c->misuse;
	return 0;
}

int dray_stats_reset(struct rte_eth_dev *dev)
{
	struct dray_device *device = dev->data->dev_private;

	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++) {
		struct dray_rxq *q = dev->data->rx_queues[i];

		for (unsigned int k = 0; q && k < RX_COUNTERS; k++)
			q->cleared[k] = dray_counted(&q->counters[k]);
	}
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++) {
		struct dray_txq *q = dev->data->tx_queues[i];

		for (unsigned int k = 0; q && k < TX_COUNTERS; k++)
			q->cleared[k] = dray_counted(&q->counters[k]);
	}
	device->link_cleared = device->link;
	return library_stats(device, &device->stats_cleared);
}

static uint64_t now_of(const struct dray_device *device, const struct dray_stats *s, enum now which)
{
	struct dray_info info = {.size = sizeof(info)};

	switch (which) {
	case NOW_HELD:
		return s->held;
	case NOW_MAPS:
		return s->maps;
	case NOW_GENERATION:
		return __atomic_load_n(&device->generation, __ATOMIC_RELAXED);
	default:
		return dray_info(device->opened->port, &info) == 0 && info.broker;
	}
}

static uint64_t value_of(const struct rte_eth_dev *dev, const struct dray_stats *s, unsigned int i)
{
	const struct dray_device *device = dev->data->dev_private;

	switch (table[i].source) {
	case OF_RX:
		return rx_sum(dev, (enum rx_counter)table[i].which);
	case OF_TX:
		return tx_sum(dev, (enum tx_counter)table[i].which);
	case OF_LIBRARY:
		return at(s, table[i].which) - at(&device->stats_cleared, table[i].which);
	case OF_LINK:
		return at(&device->link, table[i].which) -
		       at(&device->link_cleared, table[i].which);
	default:
		return now_of(device, s, (enum now)table[i].which);
	}
}

int dray_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int n)
{
	const struct dray_device *device = dev->data->dev_private;
	struct dray_stats s;
	int ret = library_stats(device, &s);

	if (ret)
		return ret;
	if (n < RTE_DIM(table))
		return RTE_DIM(table);
	for (unsigned int i = 0; i < RTE_DIM(table); i++)
		xstats[i] = (struct rte_eth_xstat){.id = i, .value = value_of(dev, &s, i)};
	return RTE_DIM(table);
}

int dray_xstats_get_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n)
{
	(void)dev;
	for (unsigned int i = 0; names && i < RTE_MIN(n, (unsigned int)RTE_DIM(table)); i++)
		snprintf(names[i].name, sizeof(names[i].name), "%s", table[i].name);
	return RTE_DIM(table);
}
