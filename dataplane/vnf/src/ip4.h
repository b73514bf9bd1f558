/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 headers: checked, forwarded, written. */
#ifndef VNF_IP4_H
#define VNF_IP4_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

/* A checked header in a packet's snapshot. */
struct ip4 {
	const uint8_t *at;
	uint32_t offset;	      /* in the packet */
	uint32_t header, total;	      /* bytes; total is within the packet */
	uint32_t source, destination; /* host order */
};

/*
 * Check the header at `offset` (RFC 1812, section 5.2.2). The datagram may extend to the
 * offset `end` of the packet.
 */
enum reason ip4_read(const struct packet *p, uint32_t offset, uint32_t end, struct ip4 *ip);

/* May a router forward it? TTL (RFC 1812, 5.3.1) and addresses (5.3.7; RFC 3927, 2.7). */
enum reason ip4_forwardable(const struct ip4 *ip);

/* More fragments follow, or it is not the first. */
bool ip4_is_fragment(const struct ip4 *ip);

uint32_t ip4_protocol(const struct ip4 *ip);

/* Copy the 20 bytes to `to`; options stay where they are. */
void ip4_copy(uint8_t *to, const struct ip4 *ip);

/* Decrement the TTL, and update the checksum (RFC 1624). */
void ip4_hop(uint8_t *header);

/* Write an outer header around `payload` bytes; type of service as given. */
void ip4_write(uint8_t *to, uint32_t source, uint32_t destination, uint32_t protocol, uint8_t tos,
	       uint32_t payload);

/*
 * Copy the outer header's congestion mark to the inner one (RFC 6040, section 4.2). DROP_ECN if
 * that is not allowed.
 */
enum reason ip4_decapsulate_ecn(const struct ip4 *outer, uint8_t *inner);

#endif
