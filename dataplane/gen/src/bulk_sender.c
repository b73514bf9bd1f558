/* SPDX-License-Identifier: Apache-2.0 */
/* Sending the second stream. */
#include "bulk_sender.h"

#include "clock.h"

#define RETRY_NS (NS_PER_MS / 10) /* the first stream may be due in the meantime */

struct bulk_sender bulk_sender_begin(struct run *run)
{
	struct options like = *run->options;

	like.size = like.bulk.size;
	like.rate = like.bulk.rate;
	like.imix = false;
	like.burst = 1;
	like.granularity_ns = 0;
	return (struct bulk_sender){.run = run, .schedule = schedule_begin(&like, clock_now())};
}

uint64_t bulk_sender_due(const struct bulk_sender *b)
{
	uint64_t due;

	if (b->run->options->bulk.rate.per_second == 0)
		return UINT64_MAX;
	due = schedule_due(&b->schedule);
	return due > b->retry_ns ? due : b->retry_ns;
}

static void pass(struct bulk_sender *b, uint64_t n, bool measuring)
{
	schedule_pass(&b->schedule, n);
	b->scheduled += measuring ? n : 0;
}

static void skip_late(struct bulk_sender *b, uint64_t now, bool measuring)
{
	uint64_t bound = b->run->options->catch_up_ns;

	if (now > bound)
		pass(b, schedule_overdue(&b->schedule, now - bound), measuring);
}

static void sent(struct bulk_sender *b, bool measuring)
{
	b->all++;
	if (measuring) {
		b->sent++;
		b->sent_bytes += b->run->options->bulk.size;
	}
	pass(b, 1, measuring);
}

/* Write the packet into its buffer. */
static void write_packet(const struct bulk_sender *b, struct io_buf *buf, unsigned flow,
			 uint64_t now, bool measuring)
{
	const struct options *o = b->run->options;
	struct packet packet = {
		.type = PACKET_DATA,
		.flags = (uint16_t)(PACKET_BULK | (measuring ? 0 : PACKET_WARMUP) |
				    (o->check ? PACKET_SUMMED : 0)),
		.flow = (uint16_t)flow,
		.stream = bulk_stream(o->stream),
		.sequence = b->all,
		.intended = schedule_due(&b->schedule),
		.sent = now,
	};

	if (o->check)
		buf->payload_sum = packet_fill(buf->data, buf->length, packet.sequence);
	io_write(b->run->io, flow, SLOTS_NO_NUMBER, &packet, buf, 1);
}

int bulk_sender_packet(struct bulk_sender *b, bool measuring)
{
	const struct options *o = b->run->options;
	struct io *io = b->run->io;
	struct io_buf buf = {.length = o->bulk.size - o->headers};
	unsigned flow = o->flows + (unsigned)(b->all % o->bulk.flows);
	uint64_t now = clock_now();
	int ret;

	skip_late(b, now, measuring);
	if (bulk_sender_due(b) > now)
		return 0;
	if (io->ops->alloc(io, flow, &buf, 1, buf.length) == 1) {
		write_packet(b, &buf, flow, now, measuring);
		ret = io->ops->send(io, flow, &buf, 1);
		if (ret == 1) {
			sent(b, measuring);
			return 0;
		}
		io->ops->discard(io, &buf, 1);
		b->errors += ret < 0;
		if (ret < 0 && io_is_fatal(ret))
			return ret;
	}
	b->retry_ns = now + RETRY_NS;
	return 0;
}

void bulk_sender_write(const struct bulk_sender *b, struct json *j)
{
	const struct bulk *how = &b->run->options->bulk;

	if (how->rate.per_second == 0)
		return;
	json_open(j, "bulk");
	json_u64(j, "stream", bulk_stream(b->run->options->stream));
	json_u64(j, "flows", how->flows);
	json_u64(j, "size", how->size);
	json_u64(j, "dscp", how->dscp);
	json_u64(j, "interval_ns", schedule_interval(&b->schedule));
	json_u64(j, "scheduled", b->scheduled);
	json_u64(j, "sent", b->sent);
	json_u64(j, "sent_bytes", b->sent_bytes);
	json_u64(j, "send_errors", b->errors);
	json_close(j);
}
