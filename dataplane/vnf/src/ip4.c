/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 headers. */
#include "ip4.h"

#include "checksum.h"
#include "net.h"

#define HOPS 64
#define DO_NOT_FRAGMENT 0x4000
#define MULTICAST 0xe0000000u /* and all above: reserved, broadcast */
#define ECN 3u
#define NOT_ECT 0u
#define ECT1 1u
#define ECT0 2u
#define CE 3u

enum reason ip4_read(const struct packet *p, uint32_t offset, uint32_t end, struct ip4 *ip)
{
	const uint8_t *h = p->head + offset;

	if (end < offset + IP4)
		return DROP_SHORT;
	if (p->have < offset + IP4)
		return DROP_HEADERS;
	*ip = (struct ip4){
		.at = h, .offset = offset, .header = (h[0] & 15u) * 4, .total = get16(h + 2)};
	if (h[0] >> 4 != 4 || ip->header < IP4)
		return DROP_IP4;
	if (ip->total < ip->header || ip->total > end - offset)
		return DROP_LENGTH;
	if (p->have < offset + ip->header)
		return DROP_HEADERS;
	if (checksum_fold(checksum_add(0, h, ip->header)) != 0)
		return DROP_CHECKSUM;
	ip->source = get32(h + 12);
	ip->destination = get32(h + 16);
	/* not allowed as a source: RFC 1122, section 3.2.1.3 */
	return ip->source < MULTICAST ? PASS : DROP_ADDRESS;
}

/*
 * Not allowed as an address of a forwarded packet: "this network", loopback, link-local, multicast,
 * reserved and broadcast.
 */
static bool stays_here(uint32_t address)
{
	return address >> 24 == 0 || address >> 24 == 127 || address >> 16 == 0xa9fe ||
	       address >= MULTICAST;
}

enum reason ip4_forwardable(const struct ip4 *ip)
{
	if (stays_here(ip->source) || stays_here(ip->destination))
		return DROP_ADDRESS;
	return ip->at[8] > 1 ? PASS : DROP_TTL;
}

bool ip4_is_fragment(const struct ip4 *ip)
{
	return (get16(ip->at + 6) & 0x3fff) != 0;
}

uint32_t ip4_protocol(const struct ip4 *ip)
{
	return ip->at[9];
}

void ip4_copy(uint8_t *to, const struct ip4 *ip)
{
	memcpy(to, ip->at, IP4);
}

static void change_word(uint8_t *header, unsigned at, uint16_t value)
{
	put16(header + 10,
	      checksum_update((uint16_t)get16(header + 10), (uint16_t)get16(header + at), value));
	put16(header + at, value);
}

void ip4_hop(uint8_t *header)
{
	change_word(header, 8, (uint16_t)(get16(header + 8) - 0x100));
}

/* Atomic in the sense of RFC 6864: never fragmented, so that the identification may be constant. */
void ip4_write(uint8_t *to, uint32_t source, uint32_t destination, uint32_t protocol, uint8_t tos,
	       uint32_t payload)
{
	memset(to, 0, IP4);
	to[0] = 0x45;
	to[1] = tos;
	put16(to + 2, IP4 + payload);
	put16(to + 6, DO_NOT_FRAGMENT);
	to[8] = HOPS;
	to[9] = (uint8_t)protocol;
	put32(to + 12, source);
	put32(to + 16, destination);
	put16(to + 10, checksum_fold(checksum_add(0, to, IP4)));
}

enum reason ip4_decapsulate_ecn(const struct ip4 *outer, uint8_t *inner)
{
	uint32_t out = outer->at[1] & ECN, in = inner[1] & ECN;

	if (out == CE && in == NOT_ECT)
		return DROP_ECN;
	if ((out == CE && in != CE) || (out == ECT1 && in == ECT0))
		change_word(inner, 0, (uint16_t)((get16(inner) & ~ECN) | out));
	return PASS;
}
