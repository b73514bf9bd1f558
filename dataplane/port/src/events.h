/* SPDX-License-Identifier: Apache-2.0 */
/* Events for the application. */
#ifndef DRAY_EVENTS_H
#define DRAY_EVENTS_H

#include "port.h"

/*
 * Post an event, and wake all threads that sleep on the port: they look for events, and follow a
 * switch. The oldest event is dropped if there are EVENTS of them. The lock is held.
 */
void port_event(struct dray_port *port, enum dray_event_type type, uint32_t generation,
		uint32_t kind, int error);

/* How many wait for dray_events. */
static inline int port_events(const struct dray_port *port)
{
	/* acquire: pairs with the releases in events.c; the tail that is read next is not before it
	 */
	uint32_t head = atomic_load_explicit(&port->event_head, memory_order_acquire);

	return (int)(atomic_load_explicit(&port->event_tail, memory_order_relaxed) - head);
}

#endif
