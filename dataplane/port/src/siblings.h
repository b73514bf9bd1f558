/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of this process. A thread that has several, and waits on one, still has to answer the
 * brokers of those whose links are down: the peer may wait for one of these first.
 */
#ifndef DRAY_SIBLINGS_H
#define DRAY_SIBLINGS_H

#include "port.h"

/* An open port becomes one of them, and is none any more when it is closed. Error: -ENOMEM. */
int siblings_add(struct dray_port *port);
void siblings_remove(struct dray_port *port);

/*
 * Call dray_service for the others whose links are down, but not more often than every 10 ms in all
 * threads. Ports with a thread of their own are left out. Returns for how many ms the caller may
 * sleep until it calls again: few while a link is down.
 */
int siblings_serve(const struct dray_port *port);

#endif
