/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows: both directions of two addresses, a protocol, and two ports of TCP, UDP or SCTP. For a
 * packet in GTP-U they are those of the inner packet. Fragments have no ports.
 */
#ifndef VNF_FLOW_H
#define VNF_FLOW_H

#include <stdbool.h>

#include "packet.h"

/* bytes: addresses and ports of IPv6 in GTP-U, after IPv6 and two tags */
#define FLOW_SNAPSHOT 136u
#define FLOW_END 18u /* bytes: an address, IPv4 first and then zeros, and a port */

/* A bijection whose every output bit depends on every input bit (the finalizer of splitmix64). */
static inline uint64_t flow_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/*
 * The flow's hash, the same for both directions. If a frame is not IP, or ends within its header:
 * over MAC addresses and EtherType. The hash has no key.
 */
uint64_t flow_hash(const struct packet *p);

/* What identifies a flow, the same for both directions: the end with the lesser bytes is first. */
struct flow_key {
	uint8_t version, protocol; /* 4 or 6 */
	uint8_t end[2][FLOW_END];
	uint8_t zero[2];
};

/* False if the frame is not IP, or ends within its header. */
bool flow_key(const struct packet *p, struct flow_key *key);

#define FLOW_TEXT 112u

/* "udp:10.0.0.1/5010-10.0.0.2/5011": no two flows have the same text. */
void flow_text(const struct flow_key *key, char text[FLOW_TEXT]);

#endif
