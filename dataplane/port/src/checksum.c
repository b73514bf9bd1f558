/* SPDX-License-Identifier: Apache-2.0 */
/* The Internet checksum over TCP and UDP. */
#include "checksum.h"

#define ETHERNET_BYTES 14
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint64_t sum(const uint8_t *p, uint32_t n)
{
	uint64_t s = 0;

	for (; n > 1; p += 2, n -= 2)
		s += be16(p);
	return n ? s + ((uint64_t)p[0] << 8) : s;
}

static bool fill(uint8_t *segment, uint32_t length, uint32_t protocol, uint64_t pseudo)
{
	uint32_t at = protocol == PROTOCOL_TCP ? 16 : 6;
	uint64_t s;

	if ((protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP) || length < at + 2)
		return false;
	segment[at] = segment[at + 1] = 0;
	s = pseudo + protocol + length + sum(segment, length);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	s = ~s & 0xffff;
	if (s == 0 && protocol == PROTOCOL_UDP)
		s = 0xffff; /* RFC 768: 0 would mean that there is none */
	segment[at] = (uint8_t)(s >> 8);
	segment[at + 1] = (uint8_t)s;
	return true;
}

/* A tag of 802.1Q or 802.1ad. */
static bool is_tag(uint32_t type)
{
	return type == 0x8100 || type == 0x88a8;
}

bool checksum_fill(uint8_t *frame, uint32_t length)
{
	uint32_t at = ETHERNET_BYTES, type, header, total;

	if (length < at + 20)
		return false;
	for (type = be16(frame + 12); is_tag(type) && length >= at + 24; at += 4)
		type = be16(frame + at + 2);
	frame += at;
	length -= at;
	if (type == 0x0800) {
		header = (frame[0] & 15u) * 4;
		total = be16(frame + 2);
		if (frame[0] >> 4 != 4 || header < 20 || total < header || total > length ||
		    (be16(frame + 6) & 0x3fff))
			return false;
		return fill(frame + header, total - header, frame[9], sum(frame + 12, 8));
	}
	if (type != 0x86dd || length < 40 || be16(frame + 4) > length - 40)
		return false;
	return fill(frame + 40, be16(frame + 4), frame[6], sum(frame + 8, 32));
}
