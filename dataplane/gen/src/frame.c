/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: written, read, turned. */
#include "frame.h"

#include <string.h>

#define ETHERNET 14u
#define IP4 20u
#define IP6 40u
#define UDP 8u
#define PROTOCOL_UDP 17
#define TYPE_IP4 0x0800
#define TYPE_IP6 0x86dd
#define HOPS 64

static void put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static uint32_t get16(const uint8_t *from)
{
	return (uint32_t)from[0] << 8 | from[1];
}

/* The sum of RFC 1071 in the machine's byte order, which it allows. An odd byte is only the last of all. */
static uint64_t add(uint64_t sum, const uint8_t *from, uint32_t length)
{
	for (; length >= 4; from += 4, length -= 4) {
		uint32_t word;

		memcpy(&word, from, sizeof(word));
		sum += word;
	}
	if (length) {
		uint32_t word = 0;

		memcpy(&word, from, length);
		sum += word;
	}
	return sum;
}

/* As it is stored. */
static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void write_ip4(uint8_t *ip, const struct frame_address *a, uint32_t payload)
{
	uint16_t sum;

	memset(ip, 0, IP4);
	ip[0] = 0x45;
	put16(ip + 2, IP4 + UDP + payload);
	put16(ip + 6, 0x4000); /* do not fragment */
	ip[8] = HOPS;
	ip[9] = PROTOCOL_UDP;
	memcpy(ip + 12, a->from_ip, 4);
	memcpy(ip + 16, a->to_ip, 4);
	sum = fold(add(0, ip, IP4));
	memcpy(ip + 10, &sum, sizeof(sum));
}

static void write_ip6(uint8_t *ip, const struct frame_address *a, uint32_t payload)
{
	memset(ip, 0, 8);
	ip[0] = 0x60;
	put16(ip + 4, UDP + payload);
	ip[6] = PROTOCOL_UDP;
	ip[7] = HOPS;
	memcpy(ip + 8, a->from_ip, 16);
	memcpy(ip + 24, a->to_ip, 16);
}

void frame_write(uint8_t *frame, const struct frame_address *a, uint16_t from_port, uint32_t payload)
{
	uint8_t *udp = frame + frame_headers(a->ip6) - UDP;

	memcpy(frame, a->to_mac, 6);
	memcpy(frame + 6, a->from_mac, 6);
	put16(frame + 12, a->ip6 ? TYPE_IP6 : TYPE_IP4);
	if (a->ip6)
		write_ip6(frame + ETHERNET, a, payload);
	else
		write_ip4(frame + ETHERNET, a, payload);
	put16(udp, from_port);
	put16(udp + 2, a->to_port);
	put16(udp + 4, UDP + payload);
	put16(udp + 6, 0);
}

/* RFC 8200, section 8.1: over both addresses, the length, the protocol, and the datagram; 0 would say that there is none. */
void frame_finish(uint8_t *frame, uint32_t headers, uint32_t payload)
{
	uint8_t *udp = frame + headers - UDP, pseudo[4] = {0, PROTOCOL_UDP};
	uint16_t sum = 0;

	if (headers != FRAME_HEADERS6)
		return;
	put16(pseudo + 2, UDP + payload);
	memcpy(udp + 6, &sum, sizeof(sum));
	sum = fold(add(add(add(0, pseudo, sizeof(pseudo)), frame + ETHERNET + 8, 32), udp, UDP + payload));
	if (sum == 0)
		sum = 0xffff;
	memcpy(udp + 6, &sum, sizeof(sum));
}

/* What the IP header says of the length of the datagram with its UDP header; 0 where it is no UDP, or not whole. */
static uint32_t datagram4(const uint8_t *ip)
{
	uint32_t total = get16(ip + 2);

	return ip[0] == 0x45 && ip[9] == PROTOCOL_UDP && !(get16(ip + 6) & 0x3fff) && total > IP4 ? total - IP4 : 0;
}

static uint32_t datagram6(const uint8_t *ip)
{
	return ip[0] >> 4 == 6 && ip[6] == PROTOCOL_UDP ? get16(ip + 4) : 0;
}

uint32_t frame_payload(const uint8_t *frame, uint32_t length, uint32_t *headers)
{
	uint8_t h[FRAME_HEADERS6];
	uint32_t n;

	*headers = FRAME_HEADERS;
	if (length < FRAME_HEADERS)
		return 0;
	memcpy(h, frame, length < sizeof(h) ? length : sizeof(h));
	*headers = frame_headers(get16(h + 12) == TYPE_IP6);
	if (length < *headers || (*headers == FRAME_HEADERS && get16(h + 12) != TYPE_IP4))
		return 0;
	n = *headers == FRAME_HEADERS6 ? datagram6(h + ETHERNET) : datagram4(h + ETHERNET);
	if (n < UDP || n - UDP > length - *headers || get16(h + *headers - UDP + 4) != n)
		return 0;
	return n - UDP;
}

static void exchange(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t t[16];

	memcpy(t, a, n);
	memcpy(a, b, n);
	memcpy(b, t, n);
}

void frame_turn(uint8_t *frame, uint32_t headers)
{
	uint8_t *ip = frame + ETHERNET, *udp = frame + headers - UDP;

	exchange(frame, frame + 6, 6);
	if (headers == FRAME_HEADERS6)
		exchange(ip + 8, ip + 24, 16);
	else
		exchange(ip + 12, ip + 16, 4);
	exchange(udp, udp + 2, 2);
}
