/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz both ends of a lane: the input is what a peer writes to shared memory, between calls of the
 * library. What must hold: data lies in its slot, no buffer is lent twice, and all that is lent can
 * be given back.
 */
#include "memory.h"
#include "test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
};

static uint64_t take(struct input *in, unsigned bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0 && in->at < in->end)
		value = value << 8 | *in->at++;
	return value;
}

struct state {
	struct bed bed;
	struct dray_pkt received[64], allocated[64];
	unsigned received_count, allocated_count;
};

static void receive(struct state *s, unsigned n)
{
	struct dray_owner *rx = &s->bed.rx->owner;
	struct dray_pkt p[64];
	unsigned room = 64 - s->received_count, got = rx->ops->recv(rx, p, n < room ? n : room);

	for (unsigned i = 0; i < got; i++) {
		const struct lane_view *v = &s->bed.view;
		bool small = p[i].index < v->pkt_slots;
		const uint8_t *slot =
			small ? v->packets + (size_t)p[i].index * v->pkt_stride
			      : v->messages + (size_t)(p[i].index - v->pkt_slots) * v->msg_stride;
		uint32_t length = small ? v->pkt_stride : v->msg_stride;

		CHECK(p[i].index < v->pkt_slots + v->msg_slots);
		CHECK((uint8_t *)p[i].data >= slot &&
		      (uint8_t *)p[i].data + p[i].length <= slot + length && p[i].length > 0);
		for (unsigned k = 0; k < s->received_count; k++)
			CHECK(s->received[k].index != p[i].index);
		s->received[s->received_count++] = p[i];
	}
}

static void allocate(struct state *s, unsigned n)
{
	struct dray_owner *tx = &s->bed.tx->owner;
	struct dray_pkt p[64];
	unsigned room = 64 - s->allocated_count,
		 got = tx->ops->alloc(tx, p, n < room ? n : room, n & 32 ? 5000 : 64);

	for (unsigned i = 0; i < got; i++) {
		for (unsigned k = 0; k < s->allocated_count; k++)
			CHECK(s->allocated[k].index != p[i].index);
		memset(p[i].data, 1, p[i].room);
		p[i].length = 64;
		s->allocated[s->allocated_count++] = p[i];
	}
}

static void give_back(struct dray_pkt *pkts, unsigned *count, unsigned which)
{
	if (*count) {
		which %= *count;
		dray_release(&pkts[which], 1);
		pkts[which] = pkts[--*count];
	}
}

static void scribble(struct state *s, struct input *in)
{
	const struct lane_view *v = &s->bed.view;
	unsigned at = (unsigned)take(in, 1) & (v->ring_size - 1);
	uint32_t place = (uint32_t)take(in, 1) | (uint32_t)take(in, 1) << 24;
	uint32_t length = (uint32_t)take(in, 2), flags = (uint32_t)take(in, 1),
		 offset = (uint32_t)take(in, 2);
	struct descriptor *d = at & 1 ? &v->ring[at] : &v->words->newest;

	if (flags & 0x80)
		length = 0u - length;
	atomic_store(&d->place_length, place | (uint64_t)length << 32);
	atomic_store(&d->offset_flags_meta, offset | (uint64_t)flags << 16);
	atomic_store(&v->extensions[at].stamp, (uint64_t)length << 30);
	atomic_store(&v->completions[at], place);
}

static void step(struct state *s, struct input *in)
{
	const struct lane_view *v = &s->bed.view;
	uint8_t op = (uint8_t)take(in, 1);
	unsigned n = op >> 3;

	switch (op & 7) {
	case 0:
		atomic_store(&v->words->tail, s->bed.rx->head + (uint32_t)(int8_t)take(in, 1));
		atomic_store(&v->words->newest_tail, atomic_load(&v->words->tail) + (n > 20));
		break;
	case 1:
		atomic_store(&v->words->returned.value,
			     s->bed.tx->returned + (uint32_t)(int8_t)take(in, 1));
		break;
	case 2:
		receive(s, n);
		break;
	case 3:
		allocate(s, n);
		break;
	case 4:
		give_back(s->received, &s->received_count, n);
		break;
	case 5:
		CHECK_EQ(s->bed.tx->owner.ops->send(&s->bed.tx->owner, s->allocated,
						    s->allocated_count),
			 s->allocated_count);
		s->allocated_count = 0;
		break;
	case 6:
		give_back(s->allocated, &s->allocated_count, n);
		break;
	default:
		scribble(s, in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	static struct state s;

	s = (struct state){.bed = bed_make((uint32_t)take(&in, 4), (uint32_t)take(&in, 1) & 31,
					   FEATURES_KNOWN)};
	while (in.at < in.end)
		step(&s, &in);
	while (s.received_count)
		give_back(s.received, &s.received_count, 0);
	while (s.allocated_count)
		give_back(s.allocated, &s.allocated_count, 0);
	CHECK_EQ(owner_held(&s.bed.rx->owner), 0);
	CHECK_EQ(owner_held(&s.bed.tx->owner), 0);
	CHECK_EQ(atomic_load(&s.bed.rx_counters->n[COUNT_MISUSE]) +
			 atomic_load(&s.bed.tx_counters->n[COUNT_MISUSE]),
		 0);
	bed_free(&s.bed);
	return 0;
}
