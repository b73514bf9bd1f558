/* SPDX-License-Identifier: Apache-2.0 */
/* What waiting shares with the bursts. */
#ifndef DRAY_BURST_H
#define DRAY_BURST_H

#include "direction.h"

/*
 * Retire the generations that the receiving side of a queue has left, if they are empty for good,
 * or if nobody polls the queue and there are too many. For a caller that does not receive:
 * dray_rx_burst retires them when it finds them empty.
 */
void direction_retire(struct dray_port *port, unsigned queue);

#endif
