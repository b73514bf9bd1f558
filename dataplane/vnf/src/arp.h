/* SPDX-License-Identifier: Apache-2.0 */
/* ARP for IPv4 over Ethernet (RFC 826), behind any number of tags. */
#ifndef VNF_ARP_H
#define VNF_ARP_H

#include "port_setup.h"

#define ARP 28u /* bytes */

struct arp {
	const uint8_t *at;
	uint32_t offset; /* in the packet; all before is the link layer */
	uint32_t operation, target;
	const uint8_t *sender; /* a unicast MAC */
};

/*
 * DROP_SHORT, or DROP_ARP if it is not about IPv4 over Ethernet or its sender has no unicast
 * address.
 */
enum reason arp_read(const struct packet *p, uint32_t offset, struct arp *arp);

/*
 * Answer a request for the port's own address, under the tags that it came with. DROP_ARP: all
 * others.
 */
enum reason arp_answer(const struct packet *p, const struct arp *arp, const struct port_setup *own,
		       struct change *c);

/*
 * How reception begins where frames have no tags and nothing is learnt from ARP. PASS: the frame is
 * of `type`, or it was ARP and is answered, which c->reply tells. DROP_TYPE: it is neither.
 */
enum reason arp_or_type(const struct packet *p, uint32_t type, const struct port_setup *own,
			struct change *c);

#endif
