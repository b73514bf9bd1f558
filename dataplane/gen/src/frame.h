/* SPDX-License-Identifier: Apache-2.0 */
/* The Ethernet, IP and UDP headers in which ports of frames carry a datagram. */
#ifndef GEN_FRAME_H
#define GEN_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "encap.h"

#define FRAME_HEADERS 42u  /* bytes over IPv4: 14 + 20 + 8 */
#define FRAME_HEADERS6 62u /* over IPv6: 14 + 40 + 8 */
#define FRAME_PORT 5010	   /* UDP source port of flow 0, and the default destination */

struct frame_address {
	bool ip6;
	uint8_t from_mac[6], to_mac[6];
	uint8_t from_ip[16], to_ip[16]; /* network order; of IPv4 the first four bytes */
	uint16_t to_port;
	const struct encap *encap; /* NULL: plain frames of one user */
};

static inline uint32_t frame_headers(bool ip6)
{
	return ip6 ? FRAME_HEADERS6 : FRAME_HEADERS;
}

/* Bytes of a frame to this address, before its payload. */
static inline uint32_t frame_headers_to(const struct frame_address *address)
{
	return address->encap ? encap_headers(address->encap) : frame_headers(address->ip6);
}

/* Exchange n bytes, at most 16. */
void frame_exchange(uint8_t *a, uint8_t *b, size_t n);

/*
 * Write the headers before a payload of that many bytes. Flow n has the source port FRAME_PORT + n.
 */
void frame_write(uint8_t *frame, const struct frame_address *address, uint16_t from_port,
		 uint32_t payload);

/* The headers that a port wrote last, which are mostly those of the next frame. Zeroed: none. */
struct frame_template {
	uint32_t payload, headers;
	uint16_t from_port;
	uint8_t bytes[ENCAP_PDU_HEADERS];
};

void frame_template_set(struct frame_template *t, const struct frame_address *address,
			uint16_t from_port, uint32_t payload);

/* Bytes that are copied at once; the last block of a header overlaps the one before. */
#define FRAME_BLOCK 16u

/* As frame_write, for a port that has one address and a template. */
static inline void frame_put(uint8_t *frame, struct frame_template *t,
			     const struct frame_address *address, uint16_t from_port,
			     uint32_t payload)
{
	if (t->payload != payload || t->from_port != from_port)
		frame_template_set(t, address, from_port, payload);
	for (uint32_t i = 0; i < t->headers; i += FRAME_BLOCK) {
		uint32_t at = i + FRAME_BLOCK <= t->headers ? i : t->headers - FRAME_BLOCK;

		memcpy(frame + at, t->bytes + at, FRAME_BLOCK);
	}
}

/*
 * Call it when the payload is written: set the UDP checksum that IPv6 requires. Over IPv4 there is
 * none.
 */
void frame_finish(uint8_t *frame, uint32_t headers, uint32_t payload);

/*
 * Bytes of the UDP payload, which begins after *headers; 0 if the frame is not a whole UDP datagram
 * over IPv4 without options, plain or in one of the encapsulations of encap.h (whose *headers say
 * which), or over IPv6 without extension headers. The sender may still be writing
 * to the frame: the result is within `length` even then. Checksums are not checked.
 */
uint32_t frame_payload(const uint8_t *frame, uint32_t length, uint32_t *headers);

/* The headers that a port read last, which are mostly those of the next frame. Zeroed: none. */
struct frame_seen {
	uint32_t length, headers, payload;
	uint8_t bytes[ENCAP_PDU_HEADERS];
};

uint32_t frame_see(struct frame_seen *seen, const uint8_t *frame, uint32_t length,
		   uint32_t *headers);

/* Whether n bytes, at least 8, are the same. Each is read once. */
static inline bool frame_same(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	uint64_t differences = 0, x, y;

	for (uint32_t i = 0; i < n; i += 8) {
		uint32_t at = i + 8 <= n ? i : n - 8;

		memcpy(&x, a + at, sizeof(x));
		memcpy(&y, b + at, sizeof(y));
		differences |= x ^ y;
	}
	return differences == 0;
}

/* As frame_payload, for a port that remembers what it has seen. */
static inline uint32_t frame_find(struct frame_seen *seen, const uint8_t *frame, uint32_t length,
				  uint32_t *headers)
{
	if (seen->payload == 0 || length != seen->length ||
	    !frame_same(frame, seen->bytes, seen->headers))
		return frame_see(seen, frame, length, headers);
	*headers = seen->headers;
	return seen->payload;
}

/*
 * Turn a frame around: swap the addresses of all layers, and the ports. What identifies the user,
 * such as VLAN tags and tunnel keys, stays.
 */
void frame_turn(uint8_t *frame, uint32_t headers);

#endif
