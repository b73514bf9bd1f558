/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a function sees of a packet, and what it decides. The bytes of a received packet may be in
 * memory that its sender can still write to: the headers are copied once, and only the copy is
 * checked, used, and sent on. The program copies such packets whole before (dpdk/work.c), since
 * what it sends must not change either.
 */
#ifndef VNF_PACKET_H
#define VNF_PACKET_H

#include <stdint.h>
#include <string.h>

#include "reason.h"

#define SNAPSHOT 192u /* bytes; even, since checksums continue after it */
#define FRONT_MAX 96u

struct packet {
	uint32_t have;	 /* bytes of head */
	uint32_t length; /* bytes of the frame, without FCS */
	unsigned in;	 /* port */
	/* the frame's own memory: beyond head it is only summed for checksums */
	const uint8_t *frame;
	uint8_t head[SNAPSHOT];
};

enum reply { REPLY_NONE, REPLY_ARP, REPLY_ECHO, REPLY_COUNT };

/*
 * The packet to send: `push` bytes of front, then `keep` bytes of the received packet, from `strip`
 * on.
 */
struct change {
	uint16_t push, strip, l2; /* l2: bytes of front that the MTU does not count */
	uint8_t out;		  /* port */
	uint8_t reply;		  /* enum reply */
	uint32_t keep;
	uint32_t destination; /* l3fwd: what to look up */
	uint8_t front[FRONT_MAX];
};

/* `want`: how many bytes of headers the function may look at, at most SNAPSHOT. */
static inline void packet_take(struct packet *p, const uint8_t *frame, uint32_t length, unsigned in,
			       uint32_t want)
{
	p->have = length < want ? length : want;
	p->length = length;
	p->in = in;
	p->frame = frame;
	memcpy(p->head, frame, p->have);
}

/* The frame has fewer than `bytes` of headers: the reason to drop it. */
static inline enum reason packet_lacks(const struct packet *p, uint32_t bytes)
{
	return p->length < bytes ? DROP_SHORT : DROP_HEADERS;
}

#endif
