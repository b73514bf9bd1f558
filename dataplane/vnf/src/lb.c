/* SPDX-License-Identifier: Apache-2.0 */
/* Load balancer: flows, and their workers. */
#include "lb.h"

#include <stdbool.h>

#include "gtpu.h"
#include "gtpu_header.h"

#define IP6 40u
#define TYPE_IP6 0x86ddu
#define TAGS_MAX 2u

enum { HOP_BY_HOP = 0, TCP = 6, ROUTING = 43, FRAGMENT = 44, DESTINATION_OPTIONS = 60, SCTP = 132 };

/* The header fields that identify a packet's flow. */
struct ip_flow {
	uint32_t address_bytes;
	const uint8_t *source, *destination;
	uint32_t protocol;
	uint32_t from, to; /* ports; 0: none */
	uint32_t l4;	   /* where its header begins; 0: this is a fragment */
};

/* A bijection whose every output bit depends on every input bit (the finalizer of splitmix64). */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/*
 * The hash of one end of a flow. The hashes of both ends are added, so both directions have one
 * sum.
 */
static uint64_t end_hash(const uint8_t *address, uint32_t bytes, uint32_t port)
{
	uint64_t h = port + 1;

	for (uint32_t i = 0; i + 2 <= bytes; i += 2)
		h = mix(h << 16 ^ h >> 48 ^ get16(address + i));
	return h;
}

static bool read_ip4(const struct packet *p, uint32_t at, struct ip_flow *flow)
{
	uint32_t header = (p->head[at] & 15u) * 4;

	if (p->have < at + IP4 || header < IP4)
		return false;
	*flow = (struct ip_flow){.address_bytes = 4,
				 .source = p->head + at + 12,
				 .destination = p->head + at + 16,
				 .protocol = p->head[at + 9]};
	if ((get16(p->head + at + 6) & 0x3fff) == 0)
		flow->l4 = at + header;
	return true;
}

static bool is_extension(uint32_t type)
{
	return type == HOP_BY_HOP || type == ROUTING || type == DESTINATION_OPTIONS;
}

/*
 * Each extension header is at least eight octets long, so the walk ends. A truncated header ends it
 * as well.
 */
static bool read_ip6(const struct packet *p, uint32_t at, struct ip_flow *flow)
{
	uint32_t l4 = at + IP6, type;

	if (p->have < l4)
		return false;
	type = p->head[at + 6];
	*flow = (struct ip_flow){
		.address_bytes = 16, .source = p->head + at + 8, .destination = p->head + at + 24};
	while (is_extension(type) && p->have >= l4 + 8) {
		type = p->head[l4];
		l4 += (p->head[l4 + 1] + 1u) * 8;
	}
	flow->protocol = type;
	if (type == FRAGMENT)
		flow->protocol = p->have > l4 ? p->head[l4] : 0;
	else
		flow->l4 = l4;
	return true;
}

static bool read_flow(const struct packet *p, uint32_t at, struct ip_flow *flow)
{
	bool is_ip = p->have > at &&
		     (p->head[at] >> 4 == 4 ? read_ip4(p, at, flow)
					    : p->head[at] >> 4 == 6 && read_ip6(p, at, flow));

	if (!is_ip)
		return false;
	if (flow->l4 && p->have >= flow->l4 + 4 &&
	    (flow->protocol == TCP || flow->protocol == PROTOCOL_UDP || flow->protocol == SCTP)) {
		flow->from = get16(p->head + flow->l4);
		flow->to = get16(p->head + flow->l4 + 2);
	}
	return true;
}

/*
 * Offset of the packet inside GTP-U; 0: there is none, or it is beyond the snapshot. The worker
 * checks the tunnel.
 */
static uint32_t inside_gtpu(const struct packet *p, const struct ip_flow *outer)
{
	uint32_t at = outer->l4 + UDP, type;
	uint8_t flags;

	if (!outer->l4 || outer->protocol != PROTOCOL_UDP || outer->to != GTPU_PORT ||
	    p->have < at + 8)
		return 0;
	flags = p->head[at];
	if (flags >> 4 != 3 || p->head[at + 1] != GTPU_G_PDU)
		return 0;
	at += 8;
	if (!(flags & 7))
		return at;
	if (p->have < at + 4)
		return 0;
	type = flags & 4 ? p->head[at + 3] : 0;
	at += 4;
	while (type) {
		uint32_t octets = p->have > at ? p->head[at] * 4u : 0;

		if (octets == 0 || p->have < at + octets)
			return 0;
		type = p->head[at + octets - 1];
		at += octets;
	}
	return at;
}

static uint64_t hash_macs(const struct packet *p, uint32_t type)
{
	if (p->have < ETHERNET)
		return 0;
	return mix(end_hash(p->head, MAC, 0) + end_hash(p->head + MAC, MAC, 0) + type);
}

uint64_t lb_hash(const struct packet *p)
{
	uint32_t at = 2 * MAC, type = p->have < ETHERNET ? 0 : get16(p->head + at), inner;
	struct ip_flow flow, inside;

	for (unsigned tags = 0; tags < TAGS_MAX && (type == TYPE_VLAN || type == TYPE_SVLAN) &&
				p->have >= at + TAG + 2;
	     tags++) {
		at += TAG;
		type = get16(p->head + at);
	}
	at += 2;
	if ((type != TYPE_IP4 && type != TYPE_IP6) || !read_flow(p, at, &flow))
		return hash_macs(p, type);
	inner = inside_gtpu(p, &flow);
	if (inner && read_flow(p, inner, &inside))
		flow = inside;
	return mix(end_hash(flow.source, flow.address_bytes, flow.from) +
		   end_hash(flow.destination, flow.address_bytes, flow.to) + flow.protocol);
}

unsigned lb_pick(uint32_t up, uint64_t hash)
{
	uint64_t largest = 0;
	unsigned best = 0;

	for (; up; up &= up - 1) {
		unsigned worker = (unsigned)__builtin_ctz(up);
		uint64_t weight = mix(hash + worker * 0x9e3779b97f4a7c15u);

		if (!best || weight > largest) {
			largest = weight;
			best = worker;
		}
	}
	return best;
}

/*
 * Needs no order with anything else: a packet may see the set of workers from shortly before.
 */
void lb_first(struct lb *lb, uint32_t up)
{
	atomic_store_explicit(&lb->up, up, memory_order_relaxed);
}

void lb_change(struct lb *lb, uint32_t up)
{
	if (atomic_load_explicit(&lb->up, memory_order_relaxed) == up)
		return;
	lb_first(lb, up);
	atomic_fetch_add_explicit(&lb->rebalances, 1, memory_order_relaxed);
}

enum reason lb_handle(const struct lb *lb, const struct packet *p, struct change *c)
{
	uint32_t up = atomic_load_explicit(&lb->up, memory_order_relaxed);

	if (p->length < ETHERNET)
		return DROP_SHORT;
	c->push = c->strip = c->l2 = 0;
	c->keep = p->length;
	c->out = 0;
	if (p->in != 0)
		return PASS;
	if (!up)
		return DROP_WORKER;
	c->out = (uint8_t)lb_pick(up, lb_hash(p));
	return PASS;
}
