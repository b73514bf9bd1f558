/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation with the broker. */
#ifndef DRAY_CONTROL_H
#define DRAY_CONTROL_H

#include "port.h"

/* Connect and greet; returns with the answer, or after the time-out. Error: -errno. */
int control_open(struct dray_port *port, uint32_t timeout_ms);

/*
 * Handle the messages that have come, and connect again if that is due. Never blocks. The lock is
 * held.
 */
void control_step(struct dray_port *port);

/* Say goodbye and hang up. */
void control_close(struct dray_port *port);

#endif
