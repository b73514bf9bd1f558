/* SPDX-License-Identifier: Apache-2.0 */
/* The packets of the bench. What comes through a tunnel is made by the function at its other end. */
#include "frames.h"

#include <stdlib.h>

#include "ip4.h"

#define SMALLEST 60u /* bytes, without FCS */
#define TAGGED 22u
#define LABELLED 18u

static void make_plain(struct frame *frame, uint32_t source, uint32_t destination)
{
	memset(frame, 0, sizeof(*frame));
	frame->length = SMALLEST;
	put16(frame->bytes + 12, TYPE_IP4);
	ip4_write(frame->bytes + ETHERNET, source, destination, PROTOCOL_UDP, 0, SMALLEST - ETHERNET - IP4);
}

static void make_tagged(struct frame *frame, uint32_t user)
{
	memset(frame, 0, sizeof(*frame));
	frame->length = SMALLEST;
	put16(frame->bytes + 12, TYPE_SVLAN);
	put16(frame->bytes + 14, 1 + user / BNG_CVLANS);
	put16(frame->bytes + 16, TYPE_VLAN);
	put16(frame->bytes + 18, 1 + user % BNG_CVLANS);
	put16(frame->bytes + 20, TYPE_IP4);
	ip4_write(frame->bytes + TAGGED, 0x64400001 + user, 0xcb007109, PROTOCOL_UDP, 0, SMALLEST - TAGGED - IP4);
}

/* The frame as the function sends it. */
static void through(const struct function *f, unsigned in, struct frame *frame)
{
	struct change c = {0};
	struct packet p;
	uint8_t rest[FRAME_ROOM];

	packet_take(&p, frame->bytes, frame->length, in, SNAPSHOT);
	if (function_handle(f, &p, &c) != PASS || c.push + c.keep > FRAME_ROOM)
		abort();
	memcpy(rest, frame->bytes + c.strip, c.keep);
	memcpy(frame->bytes, c.front, c.push);
	memcpy(frame->bytes + c.push, rest, c.keep);
	frame->length = c.push + c.keep;
}

/* The checksum stays as it is. */
static void turn_addresses(uint8_t *ip)
{
	uint8_t source[4];

	memcpy(source, ip + 12, 4);
	memcpy(ip + 12, ip + 16, 4);
	memcpy(ip + 16, source, 4);
}

static void make_bng(struct frame *frame, const struct function *f, unsigned in, uint32_t user)
{
	make_tagged(frame, user);
	if (in == 0)
		return;
	through(f, 0, frame);
	turn_addresses(frame->bytes + LABELLED);
}

static void make_gtpu(struct frame *frame, const struct function *f, unsigned in, const struct session *s)
{
	struct function gnb = *f;

	if (in == 1) {
		make_plain(frame, 0xcb007109, s->ue);
		return;
	}
	gnb.gtpu.gnb = true;
	make_plain(frame, s->ue, 0xcb007109);
	through(&gnb, 1, frame);
	turn_addresses(frame->bytes + ETHERNET);
}

void frames_make(struct frame *frames, const struct function *f, unsigned in, const uint32_t *destinations)
{
	for (uint32_t i = 0; i < FRAMES; i++) {
		if (f->mode == MODE_BNG)
			make_bng(&frames[i], f, in, i * 7919u % f->bng.users); /* a prime: all different, none beside the last */
		else if (f->mode == MODE_GTPU)
			make_gtpu(&frames[i], f, in, &f->gtpu.sessions[i * 7919u % f->gtpu.count]);
		else
			make_plain(&frames[i], 0xc0000201, destinations[i]);
	}
}
