/* SPDX-License-Identifier: Apache-2.0 */
/* What a port is, and what it has counted. */
#include <errno.h>
#include <string.h>

#include "sized.h"
#include "telemetry.h"

static void link_info(struct dray_port *port, struct dray_info *info)
{
	const struct generation *gen = atomic_load_explicit(&port->current, memory_order_relaxed);

	if (gen) {
		info->queues_in_use = gen->queues;
		info->state = DRAY_LINK_UP;
		info->kind = gen->kind;
		info->generation = gen->number;
		info->packet_max = gen->packet_max;
		info->message_max = gen->message_max;
		info->packet_slots = gen->packet_slots;
	}
	info->broker = port->control.state == CONTROL_READY;
	info->tick_hz = clock_rate_hz(&port->rate);
}

EXPORT int dray_info(struct dray_port *port, struct dray_info *out)
{
	struct dray_info info = {0};

	if (!port_valid(port))
		return -EBADF;
	if (!out)
		return -EINVAL;
	pthread_mutex_lock(&port->lock);
	memcpy(info.name, port->welcome.port, sizeof(info.name));
	memcpy(info.mac, port->welcome.mac, sizeof(info.mac));
	memcpy(info.ip4, port->welcome.ip4, sizeof(info.ip4));
	memcpy(info.ip6, port->welcome.ip6, sizeof(info.ip6));
	info.ip4_prefix = port->welcome.ip4_prefix;
	info.ip6_prefix = port->welcome.ip6_prefix;
	info.mtu = port->welcome.mtu;
	info.queues = port->queue_count;
	link_info(port, &info);
	pthread_mutex_unlock(&port->lock);
	return sized_write(out, &info, sizeof(info));
}

static void add_held(struct dray_port *port, unsigned queue, struct dray_stats *stats)
{
	for (const struct generation *gen = port->generations; gen; gen = gen->next) {
		if (gen->tx[queue])
			stats->held += owner_held(gen->tx[queue]);
		if (gen->rx[queue])
			stats->held += owner_held(gen->rx[queue]);
	}
}

static void add_queue(struct dray_port *port, unsigned q, struct dray_stats *s)
{
	s->tx_packets += port_count(port, q, COUNT_TX_PACKETS);
	s->tx_bytes += port_count(port, q, COUNT_TX_BYTES);
	s->rx_packets += port_count(port, q, COUNT_RX_PACKETS);
	s->rx_bytes += port_count(port, q, COUNT_RX_BYTES);
	s->tx_no_buffer += port_count(port, q, COUNT_TX_NO_BUFFER);
	s->tx_dropped += port_count(port, q, COUNT_TX_DROPPED);
	s->tx_copied += port_count(port, q, COUNT_TX_COPIED);
	s->rx_dropped += port_count(port, q, COUNT_RX_DROPPED);
	s->rx_copied += port_count(port, q, COUNT_RX_COPIED);
	s->misuse += port_count(port, q, COUNT_MISUSE);
	for (unsigned i = 0; i < DRAY_VIOLATIONS; i++)
		s->violations[i] += port_count(port, q, COUNT_VIOLATION + i);
	s->stamps +=
		atomic_load_explicit(&port->queues[q].rx.counters.stamps, memory_order_relaxed);
	add_held(port, q, s);
}

EXPORT int dray_stats(struct dray_port *port, unsigned queue, struct dray_stats *out)
{
	struct dray_stats stats = {0};

	if (!port_valid(port))
		return -EBADF;
	if (!out || (queue != DRAY_ALL_QUEUES && queue >= port->queue_count))
		return -EINVAL;
	pthread_mutex_lock(&port->lock);
	for (unsigned q = 0; q < port->queue_count; q++)
		if (queue == DRAY_ALL_QUEUES || queue == q)
			add_queue(port, q, &stats);
	for (const struct generation *gen = port->generations; gen; gen = gen->next)
		stats.maps += gen->map != NULL;
	pthread_mutex_unlock(&port->lock);
	return sized_write(out, &stats, sizeof(stats));
}
