/* SPDX-License-Identifier: Apache-2.0 */
/* The Ethernet, IP and UDP headers in which ports of frames carry a datagram. */
#ifndef GEN_FRAME_H
#define GEN_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dscp.h"
#include "encap.h"
#include "fapi.h"
#include "fronthaul.h"

#define FRAME_HEADERS 42u  /* bytes over IPv4: 14 + 20 + 8 */
#define FRAME_HEADERS6 62u /* over IPv6: 14 + 40 + 8 */
#define FRAME_PORT 5010	   /* UDP source port of flow 0, and the default destination */

struct frame_address {
	bool ip6;
	uint8_t from_mac[6], to_mac[6];
	uint8_t from_ip[16], to_ip[16]; /* network order; of IPv4 the first four bytes */
	uint16_t to_port;
	uint8_t dscp, bulk_dscp;
	uint16_t bulk_port; /* the first UDP source port of the bulk stream; 0: there is none */
	const struct encap *encap;	   /* NULL: plain frames of one user */
	const struct fronthaul *fronthaul; /* NULL: frames carry IP */
	const struct fapi *fapi;	   /* if set, there are no frames, but messages */
};

static inline uint32_t frame_headers(bool ip6)
{
	return ip6 ? FRAME_HEADERS6 : FRAME_HEADERS;
}

/* Bytes of a frame to this address, before its payload. */
static inline uint32_t frame_headers_to(const struct frame_address *address)
{
	if (address->fapi)
		return FAPI_HEADERS;
	return address->encap ? encap_headers(address->encap) : frame_headers(address->ip6);
}

/* The octet with the DSCP of packets from this UDP source port. */
static inline uint8_t frame_tos(const struct frame_address *address, uint16_t from_port)
{
	bool bulk = address->bulk_port && from_port >= address->bulk_port;

	return dscp_octet(bulk ? address->bulk_dscp : address->dscp);
}

/* Exchange n bytes, at most 16. */
void frame_exchange(uint8_t *a, uint8_t *b, size_t n);

/* Whether packets of one flow have headers of their own, which depend on their number. */
static inline bool frame_varies(const struct frame_address *address)
{
	return address->fronthaul || address->fapi ||
	       (address->encap && encap_varies(address->encap));
}

/*
 * Write the headers before a payload of that many bytes. Flow n has the source port FRAME_PORT + n.
 * The number of the packet, among all that are due, matters only if frame_varies.
 */
void frame_write(uint8_t *frame, const struct frame_address *address, uint16_t from_port,
		 uint32_t payload, uint64_t number);

/* The headers that a port wrote last, which are mostly those of the next frame. Zeroed: none. */
struct frame_template {
	uint32_t payload, headers;
	uint16_t from_port;
	uint64_t number;
	uint8_t bytes[ENCAP_HEADERS_MAX];
};

/* Frames that go to one address, of one flow. */
struct frame_flow {
	struct frame_template *template;
	const struct frame_address *address;
	uint16_t from_port;
	bool varies;	 /* each frame has headers of its own */
	uint64_t number; /* of the first */
};

void frame_template_set(struct frame_template *t, const struct frame_flow *flow, uint32_t payload,
			uint64_t number);

/* Bytes that are copied at once; the last block of a header overlaps the one before. */
#define FRAME_BLOCK 16u

typedef uint64_t frame_block __attribute__((vector_size(FRAME_BLOCK)));

static inline frame_block frame_load(const uint8_t *at)
{
	frame_block block;

	memcpy(&block, at, sizeof(block));
	return block;
}

/* The headers of a plain IPv4 frame as blocks, to be kept in registers. */
struct frame_blocks {
	frame_block first, second, last;
};

static inline struct frame_blocks frame_blocks(const uint8_t *bytes)
{
	return (struct frame_blocks){
		.first = frame_load(bytes),
		.second = frame_load(bytes + FRAME_BLOCK),
		.last = frame_load(bytes + FRAME_HEADERS - FRAME_BLOCK),
	};
}

/* Copy n bytes, at least a block. Without a call, which would take the registers. */
static inline __attribute__((always_inline)) void frame_copy(uint8_t *to, const uint8_t *from,
							     uint32_t n)
{
	for (uint32_t i = 0; i < n; i += FRAME_BLOCK) {
		uint32_t at = i + FRAME_BLOCK <= n ? i : n - FRAME_BLOCK;

		memcpy(to + at, from + at, FRAME_BLOCK);
	}
}

/* The headers of frames that are alike. */
struct frame_head {
	uint32_t length; /* 0: no frames */
	const uint8_t *bytes;
	struct frame_blocks plain; /* if that is their length */
};

/* Of the i-th frame. */
static inline struct frame_head frame_head(const struct frame_flow *flow, uint32_t payload,
					   unsigned i)
{
	uint64_t number;
	struct frame_template *t;

	if (!flow)
		return (struct frame_head){0};
	t = flow->template;
	number = flow->varies ? flow->number + i : 0;
	if (t->payload != payload || t->from_port != flow->from_port || t->number != number)
		frame_template_set(t, flow, payload, number);
	return (struct frame_head){
		.length = t->headers,
		.bytes = t->bytes,
		.plain = frame_blocks(t->bytes),
	};
}

/* Write it before the payload. */
static inline __attribute__((always_inline)) void frame_put(const struct frame_head *head,
							    uint8_t *payload)
{
	uint8_t *frame = payload - head->length;

	if (head->length == FRAME_HEADERS) {
		memcpy(frame, &head->plain.first, FRAME_BLOCK);
		memcpy(frame + FRAME_BLOCK, &head->plain.second, FRAME_BLOCK);
		memcpy(frame + FRAME_HEADERS - FRAME_BLOCK, &head->plain.last, FRAME_BLOCK);
	} else if (head->length) {
		if (head->length == FAPI_HEADERS) /* less than a block */
			memcpy(frame, head->bytes, FAPI_HEADERS);
		else
			frame_copy(frame, head->bytes, head->length);
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
 * which), or over IPv6 without extension headers, or a message of a fronthaul. The sender may still
 * be writing to the frame: the result is within `length` even then. Checksums are not checked.
 */
uint32_t frame_payload(const uint8_t *frame, uint32_t length, uint32_t *headers);

/* The headers that a port read last, which are mostly those of the next frame. Zeroed: none. */
struct frame_seen {
	uint32_t length, headers, payload;
	uint8_t bytes[ENCAP_HEADERS_MAX];
};

uint32_t frame_see(struct frame_seen *seen, const uint8_t *frame, uint32_t length,
		   uint32_t *headers);

/* Whether n bytes, at least a block, are the same. Each is read once. */
static inline __attribute__((always_inline)) bool frame_same(const uint8_t *a, const uint8_t *b,
							     uint32_t n)
{
	frame_block differences = {0};

	for (uint32_t i = 0; i < n; i += FRAME_BLOCK) {
		uint32_t at = i + FRAME_BLOCK <= n ? i : n - FRAME_BLOCK;

		differences |= frame_load(a + at) ^ frame_load(b + at);
	}
	return (differences[0] | differences[1]) == 0;
}

/* What frames that are alike begin with: only those of plain IPv4. */
struct frame_like {
	uint32_t length; /* UINT32_MAX, which no frame has: none are alike */
	struct frame_blocks plain;
};

static inline struct frame_like frame_like(const struct frame_seen *seen)
{
	const bool plain = seen->payload && seen->headers == FRAME_HEADERS;

	return (struct frame_like){
		.length = plain ? seen->length : UINT32_MAX,
		.plain = frame_blocks(seen->bytes),
	};
}

/* Whether a frame is alike. */
static inline bool frame_is_like(const struct frame_like *like, const uint8_t *frame,
				 uint32_t length)
{
	frame_block differences;

	if (length != like->length)
		return false;
	differences = frame_load(frame) ^ like->plain.first;
	differences |= frame_load(frame + FRAME_BLOCK) ^ like->plain.second;
	differences |= frame_load(frame + FRAME_HEADERS - FRAME_BLOCK) ^ like->plain.last;
	return (differences[0] | differences[1]) == 0;
}

/* As frame_payload, for a port that remembers what it has seen. */
static inline uint32_t frame_find(struct frame_seen *seen, const uint8_t *frame, uint32_t length,
				  uint32_t *headers)
{
	const uint32_t n = seen->headers;

	/* the usual length as a constant: without a loop */
	if (seen->payload == 0 || length != seen->length ||
	    !(n == FRAME_HEADERS ? frame_same(frame, seen->bytes, FRAME_HEADERS)
				 : frame_same(frame, seen->bytes, n)))
		return frame_see(seen, frame, length, headers);
	*headers = n;
	return seen->payload;
}

/*
 * Turn a frame around: swap the addresses of all layers, and the ports. What identifies the user,
 * such as VLAN tags and tunnel keys, stays.
 */
void frame_turn(uint8_t *frame, uint32_t headers);

/*
 * Turn a frame around to answer it from a port with this address. One to a group, such as a
 * broadcast, is answered from the port's own: no group is a source (IEEE 802.3, 3.2.3).
 */
void frame_answer(uint8_t *frame, uint32_t headers, const uint8_t *own_mac);

#endif
