/* SPDX-License-Identifier: Apache-2.0 */
/* Events for the application. */
#ifndef DRAY_EVENTS_H
#define DRAY_EVENTS_H

#include "port.h"

/* Post an event; the oldest is dropped if there are EVENTS of them. The lock is held. */
void port_event(struct dray_port *port, enum dray_event_type type, uint32_t generation,
		uint32_t kind, int error);

/* How many wait for dray_events. The lock is held. */
static inline int port_events(const struct dray_port *port)
{
	return (int)(atomic_load_explicit(&port->event_tail, memory_order_relaxed) -
		     port->event_head);
}

#endif
