/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No port: sent packets vanish, or come back at once; received packets are made here. It shows the
 * generator's own limits.
 */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "io.h"
#include "packet.h"
#include "schedule.h"

#define MESSAGES 8u /* buffers for FAPI; more are sent at no time */

struct io_null {
	struct io io;
	enum role role;
	bool check;
	bool returns; /* sent packets come back */
	unsigned buffers;
	size_t stride;	  /* of their memory */
	uint32_t written; /* bytes of headers before a packet, in its buffer */
	uint32_t headers, stream;
	struct schedule schedule; /* of packets made here: only their number and sizes */
	unsigned first, waiting;  /* ping, loop: sent, and not yet returned */
	uint32_t lengths[BURST_MAX];
	uint8_t memory[];
};

static uint8_t *buffer(struct io_null *p, unsigned i)
{
	return p->memory + i * p->stride + p->written;
}

static unsigned null_alloc(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n,
			   uint32_t longest)
{
	struct io_null *p = (struct io_null *)io;
	const size_t stride = p->stride;
	uint8_t *data;

	(void)flow;
	(void)longest;
	if (p->waiting == 0)
		p->first = 0;
	if (n > p->buffers - p->first - p->waiting)
		n = p->buffers - p->first - p->waiting;
	data = buffer(p, p->first + p->waiting);
	for (unsigned i = 0; i < n; i++, data += stride) {
		bufs[i].index = p->first + p->waiting + i;
		bufs[i].data = data;
	}
	return n;
}

static int null_send(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n)
{
	struct io_null *p = (struct io_null *)io;

	(void)flow;
	if (!p->returns)
		return (int)n;
	for (unsigned i = 0; i < n; i++)
		p->lengths[bufs[i].index] = bufs[i].length;
	p->waiting += n;
	return (int)n;
}

static void null_discard(struct io *io, struct io_buf *bufs, unsigned n)
{
	(void)io;
	(void)bufs;
	(void)n;
}

/* Do as a reflector would. */
static void turn(const struct io_null *p, struct io_buf *buf)
{
	enum packet_verdict verdict;
	struct packet packet;

	(void)packet_read(buf, 1, p->check, &packet, &verdict);
	if (verdict != PACKET_GOOD)
		return;
	packet.type = packet.type == PACKET_DATA ? PACKET_REPLY : PACKET_END_REPLY;
	packet.turned = clock_now();
	packet_write(&packet, buf, 1);
}

static int return_sent(struct io_null *p, struct io_buf *bufs, unsigned n)
{
	if (n > p->waiting)
		n = p->waiting;
	for (unsigned i = 0; i < n; i++, p->first++) {
		bufs[i] = (struct io_buf){.data = buffer(p, p->first),
					  .length = p->lengths[p->first],
					  .headers = p->headers,
					  .index = p->first};
		if (p->role == ROLE_PING)
			turn(p, &bufs[i]);
	}
	p->waiting -= n;
	return (int)n;
}

/* Sizes in turn; the padding is filled if it is to be checked. */
static void make_packets(struct io_null *p, struct io_buf *bufs, unsigned n)
{
	const bool mixed = schedule_is_mixed(&p->schedule), check = p->check;
	const uint32_t headers = p->headers;
	const size_t stride = p->stride;
	uint32_t length = p->schedule.size - headers;
	uint64_t sequence = p->schedule.packets;
	uint8_t *data = buffer(p, 0);

	for (unsigned i = 0; i < n; i++, data += stride) {
		if (mixed)
			length = schedule_mixed_size(&p->schedule, sequence + i) - headers;
		bufs[i] = (struct io_buf){
			.data = data, .length = length, .headers = headers, .index = i};
		if (check)
			bufs[i].payload_sum = packet_fill(data, length, sequence + i);
	}
}

static int null_receive(struct io *io, struct io_buf *bufs, unsigned n)
{
	struct io_null *p = (struct io_null *)io;
	struct packet first = {.type = PACKET_DATA,
			       .flags = p->check ? PACKET_SUMMED : 0,
			       .stream = p->stream,
			       .sequence = p->schedule.packets};

	if (p->returns)
		return return_sent(p, bufs, n);
	make_packets(p, bufs, n);
	first.intended = first.sent = clock_now();
	packet_write(&first, bufs, n);
	schedule_pass(&p->schedule, n);
	return (int)n;
}

static unsigned null_reply(struct io *io, struct io_buf *bufs, unsigned n)
{
	(void)io;
	(void)bufs;
	(void)n;
	return 0;
}

static void null_done(struct io *io)
{
	(void)io;
}

static int null_wait(struct io *io, unsigned what, uint64_t until_ns)
{
	struct io_null *p = (struct io_null *)io;

	if (!(what & IO_TX) && p->waiting == 0)
		io_sleep(until_ns);
	return 0;
}

static void null_close(struct io *io)
{
	free(io);
}

static const struct io_ops ops = {
	.alloc = null_alloc,
	.send = null_send,
	.discard = null_discard,
	.receive = null_receive,
	.reply = null_reply,
	.done = null_done,
	.wait = null_wait,
	.close = null_close,
};

struct io *io_null_open(const struct options *o, struct io_error *error)
{
	const bool fapi = o->fapi.scs;
	const unsigned buffers = fapi ? MESSAGES : BURST_MAX;
	const size_t stride = fapi ? o->size : PACKET_MAX;
	struct io_null *p = calloc(1, sizeof(*p) + buffers * stride);

	if (!p)
		return io_fail(error, "no memory");
	p->io = (struct io){.ops = &ops, .name = "null", .frame_max = FRAME_MAX};
	if (fapi) { /* what returns is judged by its headers */
		io_set_destination(&p->io, o);
		p->io.frame_max = FAPI_MAX;
		p->written = FAPI_HEADERS;
	}
	p->buffers = buffers;
	p->stride = stride;
	p->role = o->role;
	p->returns = o->role == ROLE_PING || o->role == ROLE_LOOP;
	p->check = o->check;
	p->headers = o->headers;
	p->stream = o->stream ? o->stream : 1;
	p->schedule = schedule_begin(o, 0);
	return &p->io;
}
