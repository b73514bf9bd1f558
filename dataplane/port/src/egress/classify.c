/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers are read where they are. The peer can change them meanwhile: each is loaded once, and
 * decides nothing but the class and the flow.
 */
#include "classify.h"

#include <string.h>

#define ETHERNET 14
#define TAG 4
#define TYPE_IP4 0x0800
#define TYPE_IP6 0x86dd
#define TYPE_VLAN 0x8100
#define TYPE_QINQ 0x88a8
#define IP4_FRAGMENT 0x3fff /* more fragments, or an offset */
#define ECN 0x03

/* Where the parts of a packet are. */
struct parts {
	const uint8_t *data;
	uint32_t length;
	uint32_t network; /* offset of what follows Ethernet and tags */
	uint16_t type;	  /* EtherType of that; 0: the packet is too short */
	bool tagged;
	uint16_t tag; /* the outermost TCI */
};

static uint16_t load16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool is_tag(uint16_t type)
{
	return type == TYPE_VLAN || type == TYPE_QINQ;
}

static struct parts parts_of(const struct dray_pkt *pkt)
{
	struct parts p = {.data = pkt->data, .length = pkt->length, .network = ETHERNET};

	if (pkt->flags & DRAY_PKT_VLAN) {
		p.tagged = true;
		p.tag = pkt->vlan;
	}
	if (p.length < ETHERNET)
		return p;
	p.type = load16(&p.data[ETHERNET - 2]);
	for (int tags = 0; tags < 2 && is_tag(p.type); tags++) {
		if (p.length < p.network + TAG) {
			p.type = 0;
			break;
		}
		if (!p.tagged)
			p.tag = load16(&p.data[p.network]);
		p.tagged = true;
		p.type = load16(&p.data[p.network + 2]);
		p.network += TAG;
	}
	return p;
}

/* The DSCP, or 64 if it is no IP packet. */
static unsigned dscp_of(const struct parts *p)
{
	const uint8_t *ip = &p->data[p->network];

	if (p->type == TYPE_IP4 && p->length >= p->network + 2)
		return ip[1] >> 2;
	if (p->type == TYPE_IP6 && p->length >= p->network + 2)
		return (unsigned)(load16(ip) >> 6 & 0x3f);
	return 64;
}

void classify_init(struct scheduler *s)
{
	const struct wire_classes *plan = &s->plan;

	memset(s->by_dscp, NO_CLASS, sizeof(s->by_dscp));
	memset(s->by_pcp, NO_CLASS, sizeof(s->by_pcp));
	s->rest = (uint8_t)(plan->classes - 1);
	for (unsigned i = plan->classes; i-- > 0;) {
		const struct wire_class *c = &plan->class[i];

		for (unsigned d = 0; d < 64; d++)
			if (c->dscp >> d & 1)
				s->by_dscp[d] = (uint8_t)i;
		for (unsigned d = 0; d < 8; d++)
			if (c->pcp >> d & 1)
				s->by_pcp[d] = (uint8_t)i;
		s->reads_packets |= c->dscp || c->pcp;
		s->by_meta |= c->flags & CLASS_META;
		if (!c->dscp && !c->pcp && !(c->flags & CLASS_META))
			s->rest = (uint8_t)i;
	}
}

static unsigned class_by_meta(const struct scheduler *s, uint32_t meta)
{
	for (unsigned i = 0; i < s->plan.classes; i++)
		if ((s->plan.class[i].flags & CLASS_META) && s->plan.class[i].meta == meta)
			return i;
	return NO_CLASS;
}

unsigned classify(const struct scheduler *s, const struct dray_pkt *pkt)
{
	unsigned first = NO_CLASS;

	if (s->plan.classes == 1)
		return 0;
	if (s->by_meta)
		first = class_by_meta(s, pkt->meta);
	if (s->reads_packets) {
		struct parts p = parts_of(pkt);
		unsigned dscp = dscp_of(&p);

		if (dscp < 64 && s->by_dscp[dscp] < first)
			first = s->by_dscp[dscp];
		if (p.tagged && s->by_pcp[p.tag >> 13] < first)
			first = s->by_pcp[p.tag >> 13];
	}
	return first == NO_CLASS ? s->rest : first;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *p, unsigned n)
{
	for (; n >= 8; p += 8, n -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		hash = mix(hash, word);
	}
	for (; n >= 4; p += 4, n -= 4) {
		uint32_t word;

		memcpy(&word, p, 4);
		hash = mix(hash, word);
	}
	return hash;
}

static bool has_ports(uint8_t protocol)
{
	return protocol == 6 || protocol == 17 || protocol == 132; /* TCP, UDP, SCTP */
}

static uint64_t mix_ports(uint64_t hash, const struct parts *p, uint32_t at, uint8_t protocol)
{
	hash = mix(hash, protocol);
	if (has_ports(protocol) && p->length >= at + 4)
		hash = mix_bytes(hash, &p->data[at], 4);
	return hash;
}

uint32_t packet_flow(const struct dray_pkt *pkt, uint64_t seed)
{
	struct parts p = parts_of(pkt);
	const uint8_t *ip = &p.data[p.network];
	uint64_t hash = seed;

	if (p.type == TYPE_IP4 && p.length >= p.network + 20) {
		hash = mix_bytes(hash, &ip[12], 8);
		if (!(load16(&ip[6]) & IP4_FRAGMENT))
			hash = mix_ports(hash, &p, p.network + (ip[0] & 0xfu) * 4, ip[9]);
	} else if (p.type == TYPE_IP6 && p.length >= p.network + 40) {
		hash = mix_ports(mix_bytes(hash, &ip[8], 32), &p, p.network + 40, ip[6]);
	} else if (p.length >= ETHERNET) {
		hash = mix_bytes(mix(hash, p.type), p.data, 12);
	}
	return (uint32_t)(hash >> 32);
}

static void mark_ip4(uint8_t *ip)
{
	uint32_t sum = load16(&ip[10]);
	uint16_t before = load16(ip);

	ip[1] |= ECN;
	/* RFC 1624: the checksum changes by what the word does. */
	sum += before + (uint32_t)(uint16_t)~load16(ip);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

bool packet_mark(struct dray_pkt *pkt)
{
	struct parts p = parts_of(pkt);
	uint8_t *ip = (uint8_t *)pkt->data + p.network;

	if (p.type == TYPE_IP4 && p.length >= p.network + 20) {
		if ((ip[1] & ECN) == 0)
			return false;
		if ((ip[1] & ECN) != ECN)
			mark_ip4(ip);
		return true;
	}
	if (p.type == TYPE_IP6 && p.length >= p.network + 40) {
		if ((ip[1] >> 4 & ECN) == 0)
			return false;
		ip[1] |= ECN << 4;
		return true;
	}
	return false;
}
