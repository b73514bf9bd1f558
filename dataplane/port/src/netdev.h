/* SPDX-License-Identifier: Apache-2.0 */
/* The netdev transport: an AF_PACKET socket per queue, which the broker opened. */
#ifndef DRAY_NETDEV_H
#define DRAY_NETDEV_H

#include "port.h"

/*
 * Take over the sockets of an OFFER, even on error. -EPROTO: they are not packet sockets; -ENOMEM.
 */
int netdev_attach(struct dray_port *port, const struct wire_offer *offer, uint32_t number, int *fds,
		  unsigned count, struct generation **out);

#endif
