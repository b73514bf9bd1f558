/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: written, read, turned. */
#include "frame.h"

#include <string.h>

#include "ip.h"

static void write_ip6(uint8_t *ip, uint8_t traffic_class, const struct frame_address *a,
		      uint32_t payload)
{
	memset(ip, 0, 8);
	ip[0] = 0x60 | traffic_class >> 4;
	ip[1] = (uint8_t)(traffic_class << 4);
	put16(ip + 4, UDP + payload);
	ip[6] = PROTOCOL_UDP;
	ip[7] = HOPS;
	memcpy(ip + 8, a->from_ip, 16);
	memcpy(ip + 24, a->to_ip, 16);
}

void frame_write(uint8_t *frame, const struct frame_address *a, uint16_t from_port,
		 uint32_t payload, uint64_t number)
{
	uint8_t *udp = frame + frame_headers(a->ip6) - UDP, tos = frame_tos(a, from_port);

	if (a->fapi) {
		fapi_write(frame, a->fapi, payload, number);
		return;
	}
	if (a->fronthaul) {
		fronthaul_write(frame, a, payload, number);
		return;
	}
	if (a->encap) {
		encap_write(frame, a, from_port, payload, number);
		return;
	}
	memcpy(frame, a->to_mac, 6);
	memcpy(frame + 6, a->from_mac, 6);
	put16(frame + 12, a->ip6 ? TYPE_IP6 : TYPE_IP4);
	if (a->ip6)
		write_ip6(frame + ETHERNET, tos, a, payload);
	else
		ip4_write(frame + ETHERNET, tos, a->from_ip, a->to_ip, PROTOCOL_UDP, UDP + payload);
	put16(udp, from_port);
	put16(udp + 2, a->to_port);
	put16(udp + 4, UDP + payload);
	put16(udp + 6, 0);
}

void frame_template_set(struct frame_template *t, const struct frame_flow *flow, uint32_t payload,
			uint64_t number)
{
	t->payload = payload;
	t->from_port = flow->from_port;
	t->number = number;
	t->headers = frame_headers_to(flow->address);
	frame_write(t->bytes, flow->address, flow->from_port, payload, number);
}

/*
 * RFC 8200, section 8.1: over both addresses, the length, the protocol, and the datagram; 0 would
 * mean no checksum.
 */
void frame_finish(uint8_t *frame, uint32_t headers, uint32_t payload)
{
	uint8_t *udp = frame + headers - UDP, pseudo[4] = {0, PROTOCOL_UDP};
	uint16_t sum = 0;

	if (headers != FRAME_HEADERS6)
		return;
	put16(pseudo + 2, UDP + payload);
	memcpy(udp + 6, &sum, sizeof(sum));
	sum = sum_fold(
		sum_add(sum_add(sum_add(0, pseudo, sizeof(pseudo)), frame + ETHERNET + 8, 32), udp,
			UDP + payload));
	if (sum == 0)
		sum = 0xffff;
	memcpy(udp + 6, &sum, sizeof(sum));
}

/* Length of the datagram with its UDP header, from the IP header; 0 if it is not UDP. */
static uint32_t datagram6(const uint8_t *ip)
{
	return ip[0] >> 4 == 6 && ip[6] == PROTOCOL_UDP ? get16(ip + 4) : 0;
}

/* draygen's own datagrams may also go to GTP-U's port: none begins like a GTP header. */
static __attribute__((noinline)) uint32_t gtpu_or_plain(const uint8_t *frame, uint32_t length,
							uint32_t plain, uint32_t *headers)
{
	uint32_t n = encap_payload(frame, length, headers);

	if (n == 0)
		*headers = FRAME_HEADERS;
	return n ? n : plain;
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
	if (length < *headers)
		return 0;
	if (get16(h + 12) == TYPE_VLAN)
		return fronthaul_payload(h, length);
	if (*headers == FRAME_HEADERS && get16(h + 12) != TYPE_IP4)
		return encap_payload(frame, length, headers);
	n = *headers == FRAME_HEADERS6 ? datagram6(h + ETHERNET)
				       : ip4_read(h + ETHERNET, PROTOCOL_UDP);
	if (n < UDP || n - UDP > length - *headers || get16(h + *headers - UDP + 4) != n)
		return 0;
	if (get16(h + FRAME_HEADERS - UDP + 2) == ENCAP_GTPU_PORT && *headers == FRAME_HEADERS)
		return gtpu_or_plain(frame, length, n - UDP, headers);
	return n - UDP;
}

/* Parse a copy, so that the result is that of the remembered bytes whatever the sender does. */
uint32_t frame_see(struct frame_seen *seen, const uint8_t *frame, uint32_t length,
		   uint32_t *headers)
{
	uint32_t payload;

	memcpy(seen->bytes, frame, length < sizeof(seen->bytes) ? length : sizeof(seen->bytes));
	payload = frame_payload(seen->bytes, length, headers);
	seen->length = length;
	seen->headers = *headers;
	seen->payload = payload;
	/* A datagram to GTP-U's port is judged by bytes after these headers too. */
	if (*headers == FRAME_HEADERS &&
	    get16(seen->bytes + FRAME_HEADERS - UDP + 2) == ENCAP_GTPU_PORT)
		seen->payload = 0;
	return payload;
}

void frame_exchange(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t t[16];

	memcpy(t, a, n);
	memcpy(a, b, n);
	memcpy(b, t, n);
}

void frame_turn(uint8_t *frame, uint32_t headers)
{
	uint8_t *ip = frame + ETHERNET, *udp = frame + headers - UDP;

	if (encap_turn(frame, headers))
		return;
	frame_exchange(frame, frame + 6, 6);
	if (get16(frame + 12) == TYPE_VLAN)
		return; /* a fronthaul's */
	if (headers == FRAME_HEADERS6)
		frame_exchange(ip + 8, ip + 24, 16);
	else
		frame_exchange(ip + 12, ip + 16, 4);
	frame_exchange(udp, udp + 2, 2);
}

void frame_answer(uint8_t *frame, uint32_t headers, const uint8_t *own_mac)
{
	frame_turn(frame, headers);
	if (frame[6] & 1)
		memcpy(frame + 6, own_mac, 6);
}
