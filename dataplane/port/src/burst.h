/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on one direction of a queue: who is in it, and which generation it uses. */
#ifndef DRAY_BURST_H
#define DRAY_BURST_H

#include "port.h"

/* Begin and end a call. false: another call is in progress. */
bool direction_enter(struct queue *queue, struct direction *dir);
void direction_leave(struct direction *dir);

/* Stop copying to a capture. */
void direction_leave_capture(struct direction *dir);

/* Move to the current generation and capture. */
void direction_update(struct dray_port *port, unsigned queue, struct direction *dir, bool sending);

/*
 * Retire the generations that the receiving side of a queue has left, if they are empty for good,
 * or if nobody polls the queue and there are too many. For a caller that does not receive:
 * dray_rx_burst retires them when it finds them empty.
 */
void direction_retire(struct dray_port *port, unsigned queue);

static inline void direction_follow(struct dray_port *port, unsigned queue, struct direction *dir,
				    bool sending)
{
	/* acquire: pairs with the releases in port_switch and port_capture. */
	if (unlikely(dir->switches != atomic_load_explicit(&port->switches, memory_order_acquire)))
		direction_update(port, queue, dir, sending);
}

/* Read a queue's bell. Returns how many times it rang; notes the end of file. */
unsigned bell_drain(struct generation *gen, unsigned queue, struct counters *counters);

#endif
