/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and latency for the daemon, which may read them without asking. */
#ifndef DRAY_TELEMETRY_H
#define DRAY_TELEMETRY_H

#include "port.h"

/*
 * Map the memfd of WELCOME in the place of the one before. The descriptor stays the caller's.
 * -EPROTO, -EPERM, other errors of mmap.
 */
int telemetry_map(struct dray_port *port, int fd, uint64_t size);

/* Copy the counters if that is due, or at once. The lock is held. */
void telemetry_step(struct dray_port *port, bool now);

/* One of enum counter, of both sides of a queue. */
uint64_t port_count(const struct dray_port *port, unsigned queue, unsigned which);

#endif
