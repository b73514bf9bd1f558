/* SPDX-License-Identifier: Apache-2.0 */
/* Broadband network gateway. */
#include "bng.h"

#include <stdlib.h>

#include "arp.h"
#include "ip4.h"

#define TAGGED (ETHERNET + 2 * TAG) /* bytes before IP on the CPE side */
#define LABELLED (ETHERNET + TAG)   /* bytes before IP on the core side */
#define GRE_KEYED 8u		    /* bytes: flags, protocol, key (RFC 2890) */
/* and nothing else: no checksum, no sequence number, version 0 */
#define GRE_HAS_KEY 0x2000u
#define VLAN_ID 0x0fffu
#define BOTTOM_OF_STACK 0x100u
/* the pipe model of RFC 3443: the label's TTL is independent of the customer's */
#define LABEL_HOPS 255u

int bng_open(struct bng *bng, unsigned ports)
{
	bng->users = ports / 2 * bng->svlans * BNG_CVLANS;
	bng->macs = calloc(bng->users, sizeof(*bng->macs));
	if (!bng->macs)
		return -1;
	for (uint32_t user = 0; user < bng->users; user++)
		atomic_init(&bng->macs[user], 0x020000000000u | user);
	return 0;
}

void bng_close(struct bng *bng)
{
	free(bng->macs);
	bng->macs = NULL;
}

/* The packet has TAGGED bytes. */
static enum reason user_of_tags(const struct bng *bng, const struct packet *p, uint32_t *user)
{
	uint32_t s = (get16(p->head + 14) & VLAN_ID) - bng->svlan_base,
		 c = (get16(p->head + 18) & VLAN_ID) - bng->cvlan_base;

	if (get16(p->head + 12) != TYPE_SVLAN || get16(p->head + 16) != TYPE_VLAN)
		return DROP_TAG;
	if (s >= bng->svlans || c >= BNG_CVLANS)
		return DROP_USER;
	*user = (p->in / 2 * bng->svlans + s) * BNG_CVLANS + c;
	return PASS;
}

/* Any thread may learn a user's address; the last one counts. */
static void learn(const struct bng *bng, uint32_t user, const uint8_t *mac)
{
	uint64_t value = (uint64_t)get16(mac) << 32 | get32(mac + 2);

	if (atomic_load_explicit(&bng->macs[user], memory_order_relaxed) != value)
		atomic_store_explicit(&bng->macs[user], value, memory_order_relaxed);
}

static enum reason arp_of_user(const struct bng *bng, const struct port_setup *own, uint32_t user,
			       const struct packet *p, struct change *c)
{
	struct arp arp;
	enum reason reason = arp_read(p, TAGGED, &arp);

	if (reason)
		return reason;
	learn(bng, user, arp.sender);
	return arp_answer(p, &arp, own, c);
}

/* Write everything before the inner header on the core side. */
static void write_tunnel(uint8_t *front, const struct bng *bng, const struct port_setup *core,
			 uint32_t user, const struct ip4 *inner)
{
	uint8_t *gre = front + LABELLED + IP4;

	port_ethernet(core, front, TYPE_MPLS);
	put32(front + ETHERNET, bng->label << 12 | BOTTOM_OF_STACK | LABEL_HOPS);
	ip4_write(front + LABELLED, core->ip, core->peer, PROTOCOL_GRE, inner->at[1],
		  GRE_KEYED + inner->total);
	put16(gre, GRE_HAS_KEY);
	put16(gre + 2, TYPE_IP4);
	put32(gre + 4, user);
}

enum reason bng_up(const struct bng *bng, const struct port_setup *port, const struct packet *p,
		   struct change *c)
{
	unsigned out = p->in + 1;
	enum reason reason;
	struct ip4 ip;
	uint32_t user;

	if (p->have < TAGGED)
		return packet_lacks(p, TAGGED);
	reason = user_of_tags(bng, p, &user);
	if (reason)
		return reason;
	if (get16(p->head + TAGGED - 2) == TYPE_ARP)
		return arp_of_user(bng, &port[p->in], user, p, c);
	if (get16(p->head + TAGGED - 2) != TYPE_IP4)
		return DROP_TYPE;
	reason = ip4_read(p, TAGGED, p->length, &ip);
	if (!reason)
		reason = ip4_forwardable(&ip);
	if (reason)
		return reason;
	c->out = (uint8_t)out;
	c->push = LABELLED + IP4 + GRE_KEYED + IP4;
	c->l2 = ETHERNET; /* the label counts: RFC 3032, section 3 */
	c->strip = TAGGED + IP4;
	c->keep = ip.total - IP4;
	reason = port_fits(&port[out], c);
	if (reason)
		return reason;
	write_tunnel(c->front, bng, &port[out], user, &ip);
	ip4_copy(c->front + c->push - IP4, &ip);
	ip4_hop(c->front + c->push - IP4);
	return PASS;
}

static enum reason read_label(const struct bng *bng, const struct packet *p)
{
	uint32_t entry;

	if (p->have < LABELLED)
		return packet_lacks(p, LABELLED);
	entry = get32(p->head + ETHERNET);
	return entry >> 12 == bng->label && entry & BOTTOM_OF_STACK ? PASS : DROP_MPLS;
}

/* From the label to the inner header. */
static enum reason read_tunnel(const struct bng *bng, const struct port_setup *core,
			       const struct packet *p, struct ip4 *outer, uint32_t *user)
{
	enum reason reason = read_label(bng, p);
	const uint8_t *gre;

	if (!reason)
		reason = ip4_read(p, LABELLED, p->length, outer);
	if (reason)
		return reason;
	if (outer->destination != core->ip || outer->source != core->peer)
		return DROP_TUNNEL;
	if (ip4_is_fragment(outer))
		return DROP_FRAGMENT;
	if (ip4_protocol(outer) != PROTOCOL_GRE)
		return DROP_PROTOCOL;
	if (outer->total < outer->header + GRE_KEYED)
		return DROP_SHORT;
	if (p->have < outer->offset + outer->header + GRE_KEYED)
		return DROP_HEADERS;
	gre = outer->at + outer->header;
	if (get16(gre) != GRE_HAS_KEY || get16(gre + 2) != TYPE_IP4)
		return DROP_GRE;
	*user = get32(gre + 4);
	return *user < bng->users ? PASS : DROP_USER;
}

static void write_tags(uint8_t *front, const struct bng *bng, const struct port_setup *cpe,
		       uint32_t user)
{
	uint64_t mac = atomic_load_explicit(&bng->macs[user], memory_order_relaxed);

	port_ethernet(cpe, front, TYPE_SVLAN);
	put16(front, (uint32_t)(mac >> 32));
	put32(front + 2, (uint32_t)mac);
	put16(front + 14, bng->svlan_base + user / BNG_CVLANS % bng->svlans);
	put16(front + 16, TYPE_VLAN);
	put16(front + 18, bng->cvlan_base + user % BNG_CVLANS);
	put16(front + 20, TYPE_IP4);
}

enum reason bng_down(const struct bng *bng, const struct port_setup *port, const struct packet *p,
		     struct change *c)
{
	struct ip4 outer, ip;
	enum reason reason;
	uint32_t user;

	reason = arp_or_type(p, TYPE_MPLS, &port[p->in], c);
	if (reason || c->reply)
		return reason;
	reason = read_tunnel(bng, &port[p->in], p, &outer, &user);
	if (!reason)
		reason = ip4_read(p, outer.offset + outer.header + GRE_KEYED,
				  outer.offset + outer.total, &ip);
	if (!reason)
		reason = ip4_forwardable(&ip);
	if (reason)
		return reason;
	c->out = (uint8_t)(user / (bng->svlans * BNG_CVLANS) * 2);
	c->push = TAGGED + IP4;
	c->l2 = TAGGED;
	c->strip = (uint16_t)(ip.offset + IP4);
	c->keep = ip.total - IP4;
	reason = port_fits(&port[c->out], c);
	if (reason)
		return reason;
	write_tags(c->front, bng, &port[c->out], user);
	ip4_copy(c->front + TAGGED, &ip);
	ip4_hop(c->front + TAGGED);
	return ip4_decapsulate_ecn(&outer, c->front + TAGGED);
}

bool bng_user(const struct bng *bng, const struct packet *p, uint32_t *user)
{
	const uint32_t key = LABELLED + IP4 + 4; /* as all senders do, without IP options */

	if (p->in % 2 == 0)
		return p->have >= TAGGED && user_of_tags(bng, p, user) == PASS;
	if (p->have < key + 4 || get16(p->head + 12) != TYPE_MPLS || p->head[LABELLED] != 0x45)
		return false;
	*user = get32(p->head + key);
	return true;
}
