/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <string.h>

_Noreturn void test_failed(void)
{
	exit(1);
}

struct wire_classes rig_plan(enum class_discipline discipline, uint32_t limit, uint64_t rate,
			     uint32_t burst)
{
	struct wire_classes plan = {.classes = 1, .rate = rate, .burst = burst};

	plan.class[0].discipline = (uint8_t)discipline;
	plan.class[0].limit = limit;
	if (discipline == DISCIPLINE_CODEL || discipline == DISCIPLINE_FQ_CODEL) {
		plan.class[0].target_ns = 5 * MS;
		plan.class[0].interval_ns = 100 * MS;
	}
	return plan;
}

static void drop(void *context, struct dray_pkt *pkt)
{
	struct rig *rig = context;

	rig->streams[pkt->reserved].dropped++;
	if (rig->drops && rig->drop_count < rig->drop_most)
		rig->drops[rig->drop_count++] = rig->now;
	free(pkt->owner);
}

void rig_init(struct rig *rig, const struct wire_classes *plan, struct stream *streams,
	      unsigned count)
{
	*rig = (struct rig){.streams = streams, .count = count, .now = SECOND};
	for (unsigned i = 0; i < count; i++)
		streams[i].id = i;
	CHECK_EQ(scheduler_new(plan, 12345, drop, rig, &rig->scheduler), 0);
}

static void store16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void ip_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	store16(&ip[10], ~sum & 0xffff);
}

/* The owner is only where the bytes are; they begin with the time. */
struct dray_pkt rig_packet(const struct rig *rig, unsigned stream)
{
	const struct stream *s = &rig->streams[stream];
	uint8_t *bytes = calloc(1, s->length + 8), *data = bytes + 8, *ip = data + 14;

	CHECK(bytes && s->length >= 60);
	memcpy(bytes, &rig->now, 8);
	store16(&data[12], 0x0800);
	ip[0] = 0x45;
	ip[1] = (uint8_t)(s->dscp << 2 | s->ecn);
	store16(&ip[2], s->length - 14);
	ip[9] = 17;
	ip[12] = 10;
	ip[16] = 10;
	ip[19] = 1;
	ip_checksum(ip);
	store16(&ip[20], s->port);
	return (struct dray_pkt){.data = data,
				 .owner = (struct dray_owner *)bytes,
				 .length = s->length,
				 .room = s->length,
				 .reserved = s->id};
}

void rig_put(struct rig *rig, unsigned stream)
{
	struct dray_pkt pkt = rig_packet(rig, stream);

	rig->streams[stream].offered++;
	scheduler_put(rig->scheduler, &pkt, 1, rig->now);
}

static void sent(struct rig *rig, struct dray_pkt *pkt)
{
	struct stream *s = &rig->streams[pkt->reserved];
	uint64_t since;

	memcpy(&since, pkt->owner, 8);
	s->sent++;
	s->bytes += pkt->length;
	s->wait_last = rig->now - since;
	s->wait_sum += s->wait_last;
	if (s->wait_last > s->wait_max)
		s->wait_max = s->wait_last;
	free(pkt->owner);
}

unsigned rig_take(struct rig *rig, unsigned *last)
{
	struct dray_pkt pkts[32];
	unsigned n, total = 0;

	while ((n = scheduler_take(rig->scheduler, pkts, 32, rig->now)) > 0) {
		if (last)
			*last = pkts[n - 1].reserved;
		for (unsigned i = 0; i < n; i++)
			sent(rig, &pkts[i]);
		total += n;
	}
	return total;
}

static uint64_t gap(const struct stream *s)
{
	return s->length * 8 * SECOND / s->rate;
}

/* The stream whose packet comes next; NULL: none offers anything. */
static struct stream *next_stream(struct rig *rig)
{
	struct stream *first = NULL;

	for (unsigned i = 0; i < rig->count; i++) {
		struct stream *s = &rig->streams[i];

		if (s->rate && (!first || s->next < first->next))
			first = s;
	}
	return first;
}

void rig_run(struct rig *rig, uint64_t until)
{
	for (unsigned i = 0; i < rig->count; i++)
		if (rig->streams[i].next < rig->now)
			rig->streams[i].next = rig->now + 7 * i;
	for (;;) {
		struct stream *s = next_stream(rig);
		uint64_t due = scheduler_due(rig->scheduler, rig->now);
		uint64_t at = s && s->next < due ? s->next : due;

		if (at >= until)
			break;
		rig->now = at > rig->now ? at : rig->now;
		if (s && s->next <= rig->now) {
			rig_put(rig, s->id);
			s->next += gap(s);
		}
		(void)rig_take(rig, NULL);
	}
	rig->now = until;
}

double rig_rate(const struct stream *stream, uint64_t ns)
{
	return (double)stream->bytes * 8 * 1e9 / (double)ns;
}

void rig_free(struct rig *rig)
{
	uint64_t out = 0, in = 0;

	scheduler_free(rig->scheduler);
	for (unsigned i = 0; i < rig->count; i++) {
		in += rig->streams[i].offered;
		out += rig->streams[i].sent + rig->streams[i].dropped;
	}
	CHECK_EQ(out, in); /* no packet is lost, none comes twice */
}
