/* SPDX-License-Identifier: Apache-2.0 */
/* A function's configuration of one port. */
#ifndef VNF_PORT_SETUP_H
#define VNF_PORT_SETUP_H

#include <stdint.h>

#include "packet.h"
#include "net.h"

#define PORTS_MAX 16u

struct port_setup {
	uint8_t mac[MAC];  /* of the port */
	uint8_t next[MAC]; /* of the next hop */
	/* host order: the function's own address there, and the far end of its tunnels */
	uint32_t ip, peer;
	uint32_t mtu; /* bytes of a frame after its Ethernet header and VLAN tags */
};

/* Ethernet header of what leaves through a port. */
static inline void port_ethernet(const struct port_setup *port, uint8_t *front, uint32_t type)
{
	memcpy(front, port->next, MAC);
	memcpy(front + MAC, port->mac, MAC);
	put16(front + 2 * MAC, type);
}

static inline enum reason port_fits(const struct port_setup *port, const struct change *c)
{
	return c->push - c->l2 + c->keep <= port->mtu ? PASS : DROP_TOO_BIG;
}

#endif
