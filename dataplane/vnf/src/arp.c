/* SPDX-License-Identifier: Apache-2.0 */
/* ARP. */
#include "arp.h"

#include <stdbool.h>

#define HARDWARE_ETHERNET 1u
#define REQUEST 1u
#define REPLY 2u

static bool is_unicast(const uint8_t *mac)
{
	static const uint8_t none[MAC];

	return !(mac[0] & 1) && memcmp(mac, none, MAC) != 0;
}

enum reason arp_read(const struct packet *p, uint32_t offset, struct arp *arp)
{
	const uint8_t *at = p->head + offset;

	if (p->have < offset + ARP)
		return packet_lacks(p, offset + ARP);
	*arp = (struct arp){.at = at,
			    .offset = offset,
			    .operation = get16(at + 6),
			    .target = get32(at + 24),
			    .sender = at + 8};
	if (get16(at) != HARDWARE_ETHERNET || get16(at + 2) != TYPE_IP4 || at[4] != MAC ||
	    at[5] != 4 || !is_unicast(arp->sender))
		return DROP_ARP;
	return PASS;
}

enum reason arp_answer(const struct packet *p, const struct arp *arp, const struct port_setup *own,
		       struct change *c)
{
	uint8_t *reply = c->front + arp->offset;

	if (arp->operation != REQUEST || arp->target != own->ip)
		return DROP_ARP;
	c->push = c->strip = (uint16_t)(arp->offset + ARP);
	c->l2 = (uint16_t)arp->offset;
	c->keep = p->length - c->strip; /* padding up to the smallest frame */
	c->out = (uint8_t)p->in;
	c->reply = REPLY_ARP;
	memcpy(c->front, p->head, arp->offset);
	memcpy(c->front, arp->sender, MAC);
	memcpy(c->front + MAC, own->mac, MAC);
	memcpy(reply, arp->at, 6);
	put16(reply + 6, REPLY);
	memcpy(reply + 8, own->mac, MAC);
	put32(reply + 14, own->ip);
	memcpy(reply + 18, arp->sender, MAC + 4);
	return PASS;
}

/* Not within arp_or_type: every packet would pay for the stack protector of struct arp. */
static __attribute__((noinline)) enum reason take_arp(const struct packet *p,
						      const struct port_setup *own,
						      struct change *c)
{
	struct arp arp;
	enum reason reason = arp_read(p, ETHERNET, &arp);

	return reason ? reason : arp_answer(p, &arp, own, c);
}

enum reason arp_or_type(const struct packet *p, uint32_t type, const struct port_setup *own,
			struct change *c)
{
	if (p->have < ETHERNET)
		return packet_lacks(p, ETHERNET);
	if (get16(p->head + 2 * MAC) == type)
		return PASS;
	if (get16(p->head + 2 * MAC) != TYPE_ARP)
		return DROP_TYPE;
	return take_arp(p, own, c);
}
