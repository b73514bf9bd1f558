/* SPDX-License-Identifier: Apache-2.0 */
/* Post events, and hand them to the application. */
#include "events.h"

#include <errno.h>

void port_event(struct dray_port *port, enum dray_event_type type, uint32_t generation,
		uint32_t kind, int error)
{
	uint32_t tail = atomic_load_explicit(&port->event_tail, memory_order_relaxed);

	if (tail - port->event_head == EVENTS)
		port->event_head++;
	port->events[tail % EVENTS] = (struct dray_event){type, generation, kind, error};
	atomic_store_explicit(&port->event_tail, tail + 1, memory_order_relaxed);
}

EXPORT int dray_events(struct dray_port *port, struct dray_event *events, unsigned n)
{
	unsigned i = 0;

	if (!port_valid(port))
		return -EBADF;
	pthread_mutex_lock(&port->lock);
	while (i < n &&
	       port->event_head != atomic_load_explicit(&port->event_tail, memory_order_relaxed))
		events[i++] = port->events[port->event_head++ % EVENTS];
	pthread_mutex_unlock(&port->lock);
	return (int)i;
}
