/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadband network gateway. Ports come in pairs: an even one to the customers' equipment (CPE),
 * the odd one after it to the core.
 *
 *   CPE   MAC 12 | 88a8 S-tag | 8100 C-tag | 0800 | IPv4 | ...
 *   core  MAC 12 | 8847 MPLS label, S=1 | IPv4, protocol 47 | GRE with key | inner IPv4 | ...
 *
 * A user is a pair of tags on a CPE port; the GRE key is the user's number.
 */
#ifndef VNF_BNG_H
#define VNF_BNG_H

#include <stdatomic.h>
#include <stdbool.h>

#include "port_setup.h"

#define BNG_CVLANS 256u	       /* of each S-VLAN */
#define BNG_USERS_MAX 1048576u /* 8 bytes each */

struct bng {
	uint32_t svlans, svlan_base, cvlan_base;
	uint32_t label;
	uint32_t users;		/* of all CPE ports */
	_Atomic uint64_t *macs; /* of each user, in the low 48 bits */
};

/*
 * Set bng->users and make the table: 0 or -1 (no memory). A user has a MAC derived from its number
 * until an ARP packet reports the real one.
 */
int bng_open(struct bng *bng, unsigned ports);
void bng_close(struct bng *bng);

/* From the customers, and to them. `port` are all ports. */
enum reason bng_up(const struct bng *bng, const struct port_setup *port, const struct packet *p,
		   struct change *c);
enum reason bng_down(const struct bng *bng, const struct port_setup *port, const struct packet *p,
		     struct change *c);

/* The user of a packet, for the load balancer; false if the packet does not show it. */
bool bng_user(const struct bng *bng, const struct packet *p, uint32_t *user);

#endif
