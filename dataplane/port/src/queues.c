/* SPDX-License-Identifier: Apache-2.0 */
/* Make what each queue needs: its descriptors, its histogram, its pool. */
#include "queues.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "rebind.h"
#include "watch.h"

#define POOL_PACKETS 1024
#define POOL_MESSAGES 8
#define ETHERNET_ROOM 64 /* beyond the MTU: header and tags, generously */

int queues_make_pools(struct dray_port *port, bool needed)
{
	struct pool_shape shape = {
		.packets = POOL_PACKETS,
		.packet_room = port->welcome.mtu + ETHERNET_ROOM,
		.messages = POOL_MESSAGES,
		.message_room = DRAY_MAX_MESSAGE,
	};
	struct generation *gen;
	int ret = 0;

	if (!needed || port->pools)
		return 0;
	gen = generation_new(DRAY_LINK_NONE, 0);
	if (!gen)
		return -ENOMEM;
	gen->destroy_owner = pool_free;
	for (unsigned q = 0; ret == 0 && q < port->queue_count; q++) {
		struct queue *queue = &port->queues[q];

		ret = pool_new(&shape, &pool_ops, gen, &queue->pool_counters, 0, &queue->pool);
		if (ret == 0)
			gen->rx[q] = &queue->pool->owner;
	}
	if (ret) {
		generation_free(gen);
		for (unsigned q = 0; q < port->queue_count; q++)
			port->queues[q].pool = NULL;
		return ret;
	}
	for (unsigned q = 0; q < port->queue_count; q++)
		gen->rx[q]->adopted = true;
	port->pools = gen;
	port_adopt(port, gen);
	return 0;
}

/* A descriptor of the port watches only rx: a thread that waits for tx alone sleeps in dray_wait.
 */
static int make_wakers(struct dray_port *port, struct queue *queue)
{
	queue->waker.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	queue->tx_waker.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (queue->waker.fd < 0 || queue->tx_waker.fd < 0)
		return -errno;
	return watch_waker(port, queue->waker.fd);
}

int queues_make(struct dray_port *port)
{
	size_t size;

	port->queue_count = port->welcome.queues;
	size = port->queue_count * sizeof(struct queue);
	port->queues = aligned_alloc(LAYOUT_ALONE, size);
	if (!port->queues)
		return -ENOMEM;
	memset(port->queues, 0, size);
	for (unsigned q = 0; q < port->queue_count; q++) {
		struct queue *queue = &port->queues[q];

		queue->waker.fd = queue->tx_waker.fd = queue->epoll = -1;
		idle_init(&queue->rx.idle, port->spin_ticks, port->learns);
	}
	for (unsigned q = 0; q < port->queue_count; q++) {
		port->queues[q].histogram = calloc(HISTOGRAM_SIZE, sizeof(uint64_t));
		if (!port->queues[q].histogram)
			return -ENOMEM;
		if (port->mode != DRAY_MODE_BUSY) {
			int ret = make_wakers(port, &port->queues[q]);

			if (ret)
				return ret;
		}
	}
	return queues_make_pools(
		port, (port->flags & DRAY_RX_COPY) ||
			      (port->welcome.hold_quota && port->welcome.hold_policy == HOLD_COPY));
}
