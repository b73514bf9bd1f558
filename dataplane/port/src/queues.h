/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of a port, and the private memory that they copy to. */
#ifndef DRAY_QUEUES_H
#define DRAY_QUEUES_H

#include "port.h"

/* Make the queues that WELCOME names. Error: -errno; port_put frees those that were made. */
int queues_make(struct dray_port *port);

/*
 * Make the memory that copies are made to, if it is needed and there is none yet. The lock is held,
 * or the port is not open yet.
 */
int queues_make_pools(struct dray_port *port, bool needed);

#endif
