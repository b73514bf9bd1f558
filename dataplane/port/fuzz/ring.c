/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz both ends of a lane, and a capture of what it carries: the input is how they are set up,
 * then what a peer writes to shared memory between calls of the library. What must hold: data lies
 * in its slot, no buffer is lent twice, and all that is lent can be given back.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "capture.h"
#include "histogram.h"
#include "memory.h"
#include "pool.h"
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
	struct pool *pool; /* for copies; NULL: none */
	struct capture_ring *capture;
	bool misuse; /* the application broke the rules too */
	struct dray_pkt received[64], allocated[64];
	unsigned received_count, allocated_count;
};

/* In its slot, or a copy. */
static void check_place(const struct state *s, const struct dray_pkt *p)
{
	const struct lane_view *v = &s->bed.view;
	bool small = p->index < v->pkt_slots;
	const uint8_t *slot =
		small ? v->packets + (size_t)p->index * v->pkt_stride
		      : v->messages + (size_t)(p->index - v->pkt_slots) * v->msg_stride;
	uint32_t length = small ? v->pkt_stride : v->msg_stride;

	CHECK(p->length > 0 && p->length <= p->room);
	if (p->owner != &s->bed.rx->owner) {
		CHECK(s->pool && p->owner == &s->pool->owner);
		return;
	}
	CHECK(p->index < v->pkt_slots + v->msg_slots);
	CHECK((uint8_t *)p->data >= slot && (uint8_t *)p->data + p->length <= slot + length);
}

static void receive(struct state *s, unsigned n)
{
	struct dray_owner *rx = &s->bed.rx->owner;
	struct dray_pkt p[64];
	unsigned room = 64 - s->received_count, got = rx->ops->recv(rx, p, n < room ? n : room);

	capture_ring_fill(s->capture, p, got);
	capture_ring_publish(s->capture, got);
	for (unsigned i = 0; i < got; i++) {
		check_place(s, &p[i]);
		for (unsigned k = 0; k < s->received_count; k++)
			CHECK(s->received[k].index != p[i].index ||
			      s->received[k].owner != p[i].owner);
		s->received[s->received_count++] = p[i];
	}
}

static void allocate(struct state *s, unsigned n)
{
	struct dray_owner *tx = &s->bed.tx->owner;
	struct dray_pkt p[64];
	unsigned room = 64 - s->allocated_count,
		 got = tx->ops->alloc(tx, p, n < room ? n : room, n & 8 ? 5000 : 64);

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

/* Sleep, or nearly, on either end. */
static void doze(struct state *s, unsigned n)
{
	struct dray_owner *owner = n & 1 ? &s->bed.rx->owner : &s->bed.tx->owner;

	(void)owner->ops->ready(owner);
	(void)owner->ops->arm(owner);
	if (n & 2)
		owner->ops->disarm(owner);
}

/* What the application should not do: send nothing, or with flags of its own, or release twice. */
static void misuse(struct state *s, unsigned n)
{
	struct dray_pkt again;

	if (n & 1 && s->allocated_count) {
		struct dray_pkt *p = &s->allocated[s->allocated_count - 1];

		p->flags = n & 2 ? DRAY_PKT_VLAN | DRAY_PKT_HASH : DRAY_PKT_CSUM_NEEDED;
		p->length = n & 4 ? 0 : p->length;
		p->index += n & 8 ? 1000 : 0;
		s->misuse |= n & 12;
	} else if (s->received_count) {
		again = s->received[s->received_count - 1];
		give_back(s->received, &s->received_count, s->received_count - 1);
		dray_release(&again, 1);
		s->misuse = true;
	}
}

/* What an honest peer does: return what it got. */
static void complete(struct state *s, unsigned n)
{
	const struct lane_view *v = &s->bed.view;
	uint32_t returned = s->bed.tx->returned;

	for (uint32_t i = 0; i <= n && returned != s->bed.tx->tail; i++, returned++) {
		uint64_t d = atomic_load(&v->ring[returned & (v->ring_size - 1)].place_length);

		atomic_store(&v->completions[returned & (v->ring_size - 1)], (uint32_t)d);
	}
	atomic_store(&v->words->returned.value, returned);
}

static void index_words(struct state *s, struct input *in, unsigned n)
{
	const struct lane_view *v = &s->bed.view;
	uint32_t value = (uint32_t)(int8_t)take(in, 1);

	if (n & 1) {
		atomic_store(&v->words->returned.value, s->bed.tx->returned + value);
		atomic_store(&s->capture->words->head, s->capture->tail - value);
		return;
	}
	atomic_store(&v->words->tail, s->bed.rx->head + value);
	atomic_store(&v->words->newest_tail, atomic_load(&v->words->tail) + (n > 10));
}

/* Time passes: as if the peer had had all buffers for long. */
static void starve(struct state *s)
{
	if (s->bed.tx->full_since && s->bed.tx->full_since != UINT64_MAX)
		s->bed.tx->full_since = 1;
	(void)tx_lane_starved(s->bed.tx);
	atomic_store(&s->bed.view.words->sender_bell.value, 1);
	atomic_store(&s->bed.view.words->receiver_bell.value, 2);
}

static void step(struct state *s, struct input *in)
{
	uint8_t op = (uint8_t)take(in, 1);
	unsigned n = op >> 4;

	switch (op & 15) {
	case 0:
	case 1:
		index_words(s, in, n);
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
	case 7:
		doze(s, n);
		break;
	case 8:
		misuse(s, n);
		break;
	case 9:
		complete(s, n);
		break;
	case 10:
		starve(s);
		break;
	case 11:
		allocate(s, 32 + n);
		break;
	default:
		scribble(s, in);
	}
}

/* One capture for all inputs, empty at first. */
static struct capture_ring *capture(void)
{
	struct wire_capture start = {.slots = 64, .slot_size = 192, .snaplen = 80, .queues = 1};
	static struct capture *made;
	struct capture_ring *ring;
	uint64_t ring_size, size;
	int fd;

	if (!made) {
		CHECK_EQ(capture_derive(&start, &ring_size, &size), 0);
		CHECK_EQ(capture_map(&start, -1, &made), -EBADF);
		fd = broker_memfd(size, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
		CHECK_EQ(capture_map(&start, fd, &made), 0);
		close(fd);
	}
	ring = capture_ring_of(made, 0, false);
	atomic_store(&ring->words->head, ring->tail);
	return ring;
}

static struct state begin(struct input *in, int bell)
{
	static _Atomic uint64_t histogram[HISTOGRAM_SIZE];
	static const uint64_t features[] = {FEATURES_KNOWN, FEATURES_KNOWN & ~FEATURE_MESSAGES,
					    FEATURE_MESSAGES, FEATURES_KNOWN & ~FEATURE_EXTRAS};
	struct lane_options o = {
		.bell = bell, .start = (uint32_t)take(in, 4), .histogram = histogram};
	struct pool_shape shape = {
		.packets = 8, .packet_room = 2048, .messages = 1, .message_room = 8192};
	uint64_t how = take(in, 1);
	struct state s = {.capture = capture()};

	o.sample_shift = how & 1 ? SAMPLE_NONE : 1;
	o.hold_quota = (uint32_t)take(in, 1) & 31;
	o.hold_copy = how & 2;
	o.rx_copy = how & 4;
	o.peer_sleeps = how & 8;
	s.bed = bed_make_with(o, features[how >> 4 & 3], 0);
	if (how & 64) {
		CHECK_EQ(pool_new(&shape, &pool_ops, s.bed.generation, s.bed.rx_counters, 0,
				  &s.pool),
			 0);
		generation_get(s.bed.generation);
		atomic_store(&s.pool->owner.thread, thread_self());
		s.bed.rx->pool = s.pool;
	}
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct state s;
	int bells[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, bells), 0);
	s = begin(&in, bells[0]);
	while (in.at < in.end)
		step(&s, &in);
	while (s.received_count)
		give_back(s.received, &s.received_count, 0);
	while (s.allocated_count)
		give_back(s.allocated, &s.allocated_count, 0);
	if (!s.misuse) {
		CHECK_EQ(owner_held(&s.bed.rx->owner), 0);
		CHECK_EQ(owner_held(&s.bed.tx->owner), 0);
		CHECK_EQ(atomic_load(&s.bed.rx_counters->n[COUNT_MISUSE]) +
				 atomic_load(&s.bed.tx_counters->n[COUNT_MISUSE]),
			 0);
	}
	if (s.pool)
		pool_free(&s.pool->owner);
	bed_free(&s.bed);
	close(bells[0]);
	close(bells[1]);
	return 0;
}
