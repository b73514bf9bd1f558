/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 router, in two halves: between them the whole burst's destinations are looked up at once. */
#ifndef VNF_L3FWD_H
#define VNF_L3FWD_H

#include "port_setup.h"

struct hop {
	uint8_t port;
	uint8_t mac[MAC];
};

/*
 * Check the packet, and write the header as it is to leave; where to is for c->destination to tell.
 * ARP is answered: c->reply.
 */
enum reason l3fwd_check(const struct port_setup *port, const struct packet *p, struct change *c);

/* With the hop found; NULL: there is none. */
enum reason l3fwd_route(const struct port_setup *port, const struct hop *hop, struct change *c);

#endif
