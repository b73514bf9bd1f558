/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a queue, between two calls: who is in it, and which generation it uses. */
#ifndef DRAY_BURST_H
#define DRAY_BURST_H

#include "port.h"

/* Begin and end a call. false: another call is in progress. */
bool side_enter(struct queue *queue, struct side *side);
void side_leave(struct side *side);

/* Stop to copy to a capture. */
void side_leave_tap(struct side *side);

/* Move to the current generation and capture. */
void side_update(struct dray_port *port, unsigned queue, struct side *side, bool sending);

static inline void side_follow(struct dray_port *port, unsigned queue, struct side *side, bool sending)
{
	/* acquire: pairs with the releases in port_switch and port_capture. */
	if (unlikely(side->switches != atomic_load_explicit(&port->switches, memory_order_acquire)))
		side_update(port, queue, side, sending);
}

/* Read what is on a queue's bell. Returns how many rings there were; notes the end of file. */
unsigned bell_drain(struct attachment *attachment, unsigned queue, struct counters *counters);

#endif
