/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: written, read, turned. */
#include "frame.h"

#include <string.h>

#define ETHERNET 14u
#define IP 20u
#define UDP 8u
#define PROTOCOL_UDP 17

static void put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static uint32_t get16(const uint8_t *from)
{
	return (uint32_t)from[0] << 8 | from[1];
}

static uint32_t ip_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IP; i += 2)
		sum += get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return ~sum & 0xffff;
}

void frame_write(uint8_t *frame, const struct frame_address *a, uint16_t from_port, uint32_t payload)
{
	uint8_t *ip = frame + ETHERNET, *udp = ip + IP;

	memcpy(frame, a->to_mac, 6);
	memcpy(frame + 6, a->from_mac, 6);
	put16(frame + 12, 0x0800);
	memset(ip, 0, IP + UDP);
	ip[0] = 0x45;
	put16(ip + 2, IP + UDP + payload);
	put16(ip + 6, 0x4000); /* do not fragment */
	ip[8] = 64;
	ip[9] = PROTOCOL_UDP;
	memcpy(ip + 12, a->from_ip, 4);
	memcpy(ip + 16, a->to_ip, 4);
	put16(ip + 10, ip_checksum(ip));
	put16(udp, from_port);
	put16(udp + 2, a->to_port);
	put16(udp + 4, UDP + payload);
}

uint32_t frame_payload(const uint8_t *frame, uint32_t length)
{
	uint8_t h[FRAME_HEADERS];
	const uint8_t *ip = h + ETHERNET, *udp = ip + IP;
	uint32_t total;

	if (length < FRAME_HEADERS)
		return 0;
	memcpy(h, frame, sizeof(h));
	total = get16(ip + 2);
	if (get16(h + 12) != 0x0800 || ip[0] != 0x45 || ip[9] != PROTOCOL_UDP || (get16(ip + 6) & 0x3fff))
		return 0;
	if (total < IP + UDP || total > length - ETHERNET || get16(udp + 4) != total - IP)
		return 0;
	return total - IP - UDP;
}

static void exchange(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t t[6];

	memcpy(t, a, n);
	memcpy(a, b, n);
	memcpy(b, t, n);
}

void frame_turn(uint8_t *frame)
{
	exchange(frame, frame + 6, 6);
	exchange(frame + ETHERNET + 12, frame + ETHERNET + 16, 4);
	exchange(frame + ETHERNET + IP, frame + ETHERNET + IP + 2, 2);
}
