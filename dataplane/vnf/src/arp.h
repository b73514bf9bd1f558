/* SPDX-License-Identifier: Apache-2.0 */
/* ARP for IPv4 over Ethernet (RFC 826), behind any number of tags. */
#ifndef VNF_ARP_H
#define VNF_ARP_H

#include "port_setup.h"

#define ARP 28u /* bytes */

struct arp {
	const uint8_t *at;
	uint32_t offset; /* in the packet; the link layer is before it */
	uint32_t operation, target;
	const uint8_t *sender; /* a unicast MAC */
};

/*
 * DROP_SHORT; DROP_ARP if the packet is not for IPv4 over Ethernet, or its sender has no unicast
 * address.
 */
enum reason arp_read(const struct packet *p, uint32_t offset, struct arp *arp);

/*
 * Answer a request for the port's own address, with the same tags. DROP_ARP for all other packets.
 */
enum reason arp_answer(const struct packet *p, const struct arp *arp, const struct port_setup *own,
		       struct change *c);

/*
 * First step of reception if frames have no tags and the function learns nothing from ARP. PASS:
 * the frame is of `type`, or was an ARP request and c->reply is set. DROP_TYPE: neither.
 */
enum reason arp_or_type(const struct packet *p, uint32_t type, const struct port_setup *own,
			struct change *c);

#endif
