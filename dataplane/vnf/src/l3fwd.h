/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 router, in two halves: between them, one lookup serves the destinations of a whole burst. */
#ifndef VNF_L3FWD_H
#define VNF_L3FWD_H

#include "port_setup.h"

struct hop {
	uint8_t port;
	uint8_t mac[MAC];
};

/*
 * Check the packet, and write its new header; c->destination is the address to look up. An ARP
 * request is answered: c->reply.
 */
enum reason l3fwd_check(const struct port_setup *port, const struct packet *p, struct change *c);

/* The second half, with the hop that was found; NULL: none. */
enum reason l3fwd_route(const struct port_setup *port, const struct hop *hop, struct change *c);

#endif
