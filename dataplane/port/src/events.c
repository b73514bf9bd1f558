/* SPDX-License-Identifier: Apache-2.0 */
/* Post events, and hand them to the application. */
#include "events.h"

#include <errno.h>

static void wake_all(struct dray_port *port)
{
	for (unsigned q = 0; q < port->queue_count; q++) {
		waker_wake(&port->queues[q].waker);
		waker_wake(&port->queues[q].tx_waker);
	}
}

void port_event(struct dray_port *port, enum dray_event_type type, uint32_t generation,
		uint32_t kind, int error)
{
	uint32_t head = atomic_load_explicit(&port->event_head, memory_order_relaxed),
		 tail = atomic_load_explicit(&port->event_tail, memory_order_relaxed);

	if (tail - head == EVENTS)
		atomic_store_explicit(&port->event_head, head + 1, memory_order_release);
	port->events[tail % EVENTS] = (struct dray_event){type, generation, kind, error};
	atomic_store_explicit(&port->event_tail, tail + 1, memory_order_relaxed);
	wake_all(port);
}

EXPORT int dray_events(struct dray_port *port, struct dray_event *events, unsigned n)
{
	uint32_t head;
	unsigned i = 0;

	if (!port_valid(port))
		return -EBADF;
	pthread_mutex_lock(&port->lock);
	head = atomic_load_explicit(&port->event_head, memory_order_relaxed);
	while (i < n && head != atomic_load_explicit(&port->event_tail, memory_order_relaxed))
		events[i++] = port->events[head++ % EVENTS];
	/* release: pairs with the acquire in port_events. */
	atomic_store_explicit(&port->event_head, head, memory_order_release);
	pthread_mutex_unlock(&port->lock);
	return (int)i;
}
