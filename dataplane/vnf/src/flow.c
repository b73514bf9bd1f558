/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the headers that identify a flow. */
#include "flow.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "gtpu.h"
#include "gtpu_header.h"

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

/*
 * The hash of one end of a flow. The hashes of both ends are added, so both directions have one
 * sum.
 */
static uint64_t end_hash(const uint8_t *address, uint32_t bytes, uint32_t port)
{
	uint64_t h = port + 1;

	for (uint32_t i = 0; i + 2 <= bytes; i += 2)
		h = flow_mix(h << 16 ^ h >> 48 ^ get16(address + i));
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
	return flow_mix(end_hash(p->head, MAC, 0) + end_hash(p->head + MAC, MAC, 0) + type);
}

/* Find what identifies the packet's flow. False: the frame is not IP, and *type says what it is. */
static bool find_flow(const struct packet *p, struct ip_flow *flow, uint32_t *type)
{
	uint32_t at = 2 * MAC, inner;
	struct ip_flow inside;

	*type = p->have < ETHERNET ? 0 : get16(p->head + at);
	for (unsigned tags = 0; tags < TAGS_MAX && (*type == TYPE_VLAN || *type == TYPE_SVLAN) &&
				p->have >= at + TAG + 2;
	     tags++) {
		at += TAG;
		*type = get16(p->head + at);
	}
	at += 2;
	if ((*type != TYPE_IP4 && *type != TYPE_IP6) || !read_flow(p, at, flow))
		return false;
	inner = inside_gtpu(p, flow);
	if (inner && read_flow(p, inner, &inside))
		*flow = inside;
	return true;
}

uint64_t flow_hash(const struct packet *p)
{
	struct ip_flow flow;
	uint32_t type;

	if (!find_flow(p, &flow, &type))
		return hash_macs(p, type);
	return flow_mix(end_hash(flow.source, flow.address_bytes, flow.from) +
			end_hash(flow.destination, flow.address_bytes, flow.to) + flow.protocol);
}

static void put_end(uint8_t end[FLOW_END], const uint8_t *address, uint32_t bytes, uint32_t port)
{
	memcpy(end, address, bytes);
	put16(end + FLOW_END - 2, port);
}

bool flow_key(const struct packet *p, struct flow_key *key)
{
	struct ip_flow flow;
	uint8_t end[2][FLOW_END] = {0};
	bool swap;
	uint32_t type;

	if (!find_flow(p, &flow, &type))
		return false;
	put_end(end[0], flow.source, flow.address_bytes, flow.from);
	put_end(end[1], flow.destination, flow.address_bytes, flow.to);
	swap = memcmp(end[0], end[1], FLOW_END) > 0;
	*key = (struct flow_key){.version = flow.address_bytes == 4 ? 4 : 6,
				 .protocol = (uint8_t)flow.protocol};
	memcpy(key->end[0], end[swap], FLOW_END);
	memcpy(key->end[1], end[!swap], FLOW_END);
	return true;
}

void flow_text(const struct flow_key *key, char text[FLOW_TEXT])
{
	int family = key->version == 4 ? AF_INET : AF_INET6;
	char address[2][INET6_ADDRSTRLEN], protocol[8];

	for (unsigned i = 0; i < 2; i++)
		inet_ntop(family, key->end[i], address[i], sizeof(address[i]));
	snprintf(protocol, sizeof(protocol), "%u", key->protocol);
	snprintf(text, FLOW_TEXT, "%s:%s/%u-%s/%u",
		 key->protocol == PROTOCOL_UDP ? "udp"
		 : key->protocol == TCP	       ? "tcp"
		 : key->protocol == SCTP       ? "sctp"
					       : protocol,
		 address[0], get16(key->end[0] + FLOW_END - 2), address[1],
		 get16(key->end[1] + FLOW_END - 2));
}
