/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving end of a lane: check, deliver, return. A hostile peer may have written anything
 * that is read here.
 */
#include "lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "histogram.h"
#include "pool.h"

#define LANE(h) ((struct rx_lane *)(h))
#define TO_APPLICATION (DESC_CSUM_NEEDED | DESC_CSUM_GOOD | DESC_VLAN | DESC_HASH)

/* The private copy of a descriptor. */
struct received {
	uint32_t place, length, offset, flags, meta;
};

static inline struct received load_from(const struct descriptor *d)
{
	uint64_t a = atomic_load_explicit(&d->place_length, memory_order_relaxed);
	uint64_t b = atomic_load_explicit(&d->offset_flags_meta, memory_order_relaxed);

	return (struct received){(uint32_t)a, (uint32_t)(a >> 32), (uint16_t)b, (uint16_t)(b >> 16),
				 (uint32_t)(b >> 32)};
}

static inline struct received load(const struct rx_lane *l, uint32_t at)
{
	return load_from(&l->view.ring[at & (l->view.ring_size - 1)]);
}

/*
 * The descriptor before `tail`, from the tail's own line if it belongs to that tail before and
 * after it was read, else from the ring.
 */
static inline struct received load_newest(struct rx_lane *l, uint32_t tail)
{
	const struct lane_words *w = l->view.words;
	struct received d;

	/* acquire: pairs with the release in put_newest (P5). */
	if (likely(atomic_load_explicit(&w->newest_tail, memory_order_acquire) == tail)) {
		d = load_from(&w->newest);
		/* acquire: pairs with the fence in put_newest (P5). */
		atomic_thread_fence(memory_order_acquire);
		if (likely(atomic_load_explicit(&w->newest_tail, memory_order_relaxed) == tail))
			return d;
	}
	return load(l, tail - 1);
}

/* How many descriptors there are to take. */
static inline uint32_t available(struct rx_lane *l, uint32_t wanted)
{
	uint32_t n = l->seen_tail - l->head, tail;

	if (n >= wanted)
		return wanted;
	/* acquire: pairs with the release in tx_lane_send (P1). */
	tail = atomic_load_explicit(&l->view.words->tail, memory_order_acquire);
	if (unlikely(tail - l->head > l->view.ring_size)) {
		if (tail != l->bad_tail)
			violation(l->owner.counters, DRAY_BAD_RING_INDEX);
		l->bad_tail = tail;
		return n;
	}
	l->seen_tail = tail;
	n = tail - l->head;
	return n < wanted ? n : wanted;
}

static inline void complete(struct rx_lane *l, uint32_t place)
{
	atomic_store_explicit(&l->view.completions[l->returned++ & (l->view.ring_size - 1)], place,
			      memory_order_relaxed);
}

static uint32_t place_of(const struct rx_lane *l, uint32_t index)
{
	if (likely(index < l->view.pkt_slots))
		return index;
	return (index - l->view.pkt_slots) | (uint32_t)REGION_MESSAGES << PLACE_SLOT_BITS;
}

static void rx_lane_return(struct rx_lane *l)
{
	/* release: pairs with the acquire in see_returned (P2). */
	atomic_store_explicit(&l->view.words->returned.value, l->returned, memory_order_release);
	if (l->ringer.peer_sleeps)
		ringer_ring(&l->ringer);
}

static void measure(struct rx_lane *l, uint32_t at)
{
	uint64_t then = atomic_load_explicit(
		&l->view.extensions[at & (l->view.ring_size - 1)].stamp, memory_order_relaxed);
	uint64_t ticks = clock_ticks() - then;

	if (ticks >> (HISTOGRAM_MAX_BIT + 1)) {
		violation(l->owner.counters, DRAY_BAD_STAMP);
		return;
	}
	count_add(&l->owner.counters->stamps, 1);
	if (l->histogram)
		count_add(&l->histogram[histogram_index(ticks)], 1);
}

/* Check a descriptor. Returns its index in the ledger, or OWNER_UNLINKED if it was dropped. */
static inline uint32_t check(struct rx_lane *l, const struct received *d, uint8_t **slot,
			     uint32_t *size)
{
	const struct lane_view *v = &l->view;
	uint32_t index = d->place, number;

	*size = v->pkt_stride;
	if (unlikely(index >= v->pkt_slots)) {
		number = d->place & PLACE_SLOT_MASK;
		if (d->place >> PLACE_SLOT_BITS > REGION_MESSAGES ||
		    (d->place >> PLACE_SLOT_BITS == REGION_MESSAGES && !v->msg_slots)) {
			violation(l->owner.counters, DRAY_BAD_REGION);
			return OWNER_UNLINKED;
		}
		if (d->place >> PLACE_SLOT_BITS == REGION_PACKETS || number >= v->msg_slots) {
			violation(l->owner.counters, DRAY_BAD_SLOT);
			return OWNER_UNLINKED;
		}
		index = v->pkt_slots + number;
		*size = v->msg_stride;
	}
	*slot = slot_begin(l->ledger[index]);
	if (unlikely(slot_state(l->ledger[index]) == SLOT_HELD)) {
		violation(l->owner.counters, DRAY_BAD_DOUBLE);
		return OWNER_UNLINKED;
	}
	if (unlikely(d->length == 0 || (uint64_t)d->offset + d->length > *size)) {
		violation(l->owner.counters, DRAY_BAD_BOUNDS);
		complete(l, d->place);
		return OWNER_UNLINKED;
	}
	if (unlikely((d->flags & DESC_END) == 0 || (d->flags & ~l->allowed_flags))) {
		violation(l->owner.counters, DRAY_BAD_FLAGS);
		complete(l, d->place);
		return OWNER_UNLINKED;
	}
	return index;
}

static void fill_extras(const struct rx_lane *l, uint32_t at, struct dray_pkt *p)
{
	const struct extension *e = &l->view.extensions[at & (l->view.ring_size - 1)];
	uint64_t word = atomic_load_explicit(&e->hash_vlan, memory_order_relaxed);

	if (p->flags & DESC_HASH)
		p->hash = (uint32_t)word;
	if (p->flags & DESC_VLAN)
		p->vlan = (uint16_t)(word >> 32);
}

static inline void fill(struct rx_lane *l, const struct received *d, uint32_t at, uint8_t *slot,
			uint32_t size, uint32_t index, struct dray_pkt *p)
{
	__builtin_prefetch(slot + d->offset);
	*p = (struct dray_pkt){
		.data = slot + d->offset,
		.length = d->length,
		.room = size - d->offset,
		.flags = (uint16_t)(d->flags & TO_APPLICATION),
		.meta = d->meta,
		.headroom = d->offset,
		.owner = &l->owner,
		.index = index,
	};
	if (unlikely(d->flags & (DESC_VLAN | DESC_HASH | DESC_STAMP))) {
		fill_extras(l, at, p);
		if (d->flags & DESC_STAMP)
			measure(l, at);
	}
}

static inline void took(struct rx_lane *l, uint32_t head, uint32_t before, unsigned got,
			uint64_t bytes)
{
	struct counters *c = l->owner.counters;

	l->head = head;
	if (unlikely(l->returned != before))
		rx_lane_return(l);
	count(c, COUNT_RX_PACKETS, got);
	count(c, COUNT_RX_BYTES, bytes);
	atomic_store_explicit(&c->depth, l->seen_tail - head, memory_order_relaxed);
}

/*
 * Copy or drop a packet that the quota or the options do not let the application hold. Its slot
 * goes back at once.
 */
static bool deliver_copy(struct rx_lane *l, struct dray_pkt *p, uint32_t place, bool copy)
{
	struct dray_pkt to;

	if (!copy || !l->pool || !pool_take(l->pool, &to, 1, p->length)) {
		count(l->owner.counters, COUNT_RX_DROPPED, 1);
		complete(l, place);
		return false;
	}
	memcpy(to.data, p->data, p->length);
	to.length = p->length;
	to.flags = p->flags;
	to.vlan = p->vlan;
	to.hash = p->hash;
	to.meta = p->meta;
	*p = to;
	complete(l, place);
	count(l->owner.counters, COUNT_RX_COPIED, 1);
	return true;
}

/* As rx_lane_recv, but delivers at most `in_place` packets in place. */
static unsigned recv_copying(struct rx_lane *l, struct dray_pkt *pkts, unsigned n,
			     uint32_t in_place, bool copy)
{
	uint32_t at = l->head, end, before = l->returned, lent = 0;
	uint64_t bytes = 0;
	unsigned got = 0;

	end = at + available(l, n);
	for (; at != end; at++) {
		struct received d = load(l, at);
		uint8_t *slot;
		uint32_t size, index = check(l, &d, &slot, &size);

		if (index == OWNER_UNLINKED)
			continue;
		fill(l, &d, at, slot, size, index, &pkts[got]);
		if (lent < in_place) {
			slot_set(&l->ledger[index], SLOT_HELD);
			lent++;
		} else if (!deliver_copy(l, &pkts[got], d.place, copy)) {
			continue;
		}
		bytes += d.length;
		got++;
	}
	owner_lend(&l->owner, (int32_t)lent);
	took(l, end, before, got, bytes);
	return got;
}

static unsigned rx_lane_recv_copy(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n)
{
	return recv_copying(LANE(owner), pkts, n, 0, true);
}

/*
 * Of the second word of a descriptor: the flags that every packet has, and those that are passed on
 * and mean nothing here.
 */
#define WORD_PLAIN ((uint32_t)DESC_END << 16)
#define WORD_PASSED ((uint32_t)(DESC_CSUM_NEEDED | DESC_CSUM_GOOD) << 16)

/*
 * The offset, if the flags are plain: with END, and none that needs more than passing on. Else
 * something beyond every offset.
 */
static inline uint32_t plain_offset(uint64_t rest)
{
	return ((uint32_t)rest ^ WORD_PLAIN) & ~WORD_PASSED;
}

/*
 * Whether a packet slot is not held, by its word of the ledger, and the bounds fit. limit: the
 * stride, and at most what no offset is beyond.
 */
static inline bool plain(uint64_t word, uint32_t length, size_t offset, size_t limit)
{
	if (UNCHECKED)
		return true;
	/* length - 1 wraps for 0, and is then too long. */
	return likely((int64_t)word >= 0 && (size_t)(length - 1) + offset < limit);
}

/*
 * Take descriptors while they are plain: a packet slot that is not held, bounds that fit, and no
 * flags that need more than passing on. `n` from `at` on, within the ring's end; returns how many.
 * check() looks again at a descriptor that is not plain, and knows why. A loop of its own, so that
 * everything stays in registers.
 */
static __attribute__((noinline)) uint32_t take_plain(struct rx_lane *l, uint32_t at, uint32_t n,
						     struct dray_pkt *p, uint64_t *bytes)
{
	const size_t slots = l->view.pkt_slots, stride = l->view.pkt_stride, limit = l->plain_limit;
	const struct descriptor *const first = &l->view.ring[at & (l->view.ring_size - 1)],
				       *const last = first + n, *from;
	const uint64_t passed = ~(uint64_t)UINT32_MAX | WORD_PASSED;
	uint64_t *const ledger = l->ledger;
	uint64_t sum = 0, swap = UINT32_MAX;

	HIDE(swap);
	for (from = first; from != last; from++, p++) {
		uint64_t a = atomic_load_explicit(&from->place_length, memory_order_relaxed);
		uint64_t b = atomic_load_explicit(&from->offset_flags_meta, memory_order_relaxed);
		size_t place = (uint32_t)a, offset = plain_offset(b);
		uint64_t word;
		uint8_t *data;

		if (!UNCHECKED && unlikely(place >= slots))
			break;
		word = ledger[place];
		if (unlikely(!plain(word, (uint32_t)(a >> 32), offset, limit)))
			break;
		data = (uint8_t *)(uintptr_t)word + offset;
		__builtin_prefetch(data);
		slot_set(&ledger[place], SLOT_HELD);
		/* The last: stride - offset, and above it the offset. */
		pkt_set(p, data, &l->owner, stride + offset * swap);
		store_word(&p->index, a);
		store_word(&p->vlan, b & passed);
		sum += a >> 32;
	}
	*bytes += sum;
	return (uint32_t)(from - first);
}

/* Take one descriptor of any kind; false if it was dropped. */
static bool take_any(struct rx_lane *l, const struct received *d, uint32_t at, struct dray_pkt *p)
{
	uint8_t *slot;
	uint32_t size, index = check(l, d, &slot, &size);

	if (index == OWNER_UNLINKED)
		return false;
	slot_set(&l->ledger[index], SLOT_HELD);
	fill(l, d, at, slot, size, index, p);
	return true;
}

/*
 * Prefetch descriptors of the next burst, as far as they are known to exist, while the application
 * works on this one.
 */
static inline void prefetch_next(const struct rx_lane *l, uint32_t at, uint32_t n)
{
	const uint32_t known = l->seen_tail - at, first = at & (l->view.ring_size - 1),
		       to_wrap = l->view.ring_size - first;
	const uint32_t some = known < n ? known : n;
	const struct descriptor *d = &l->view.ring[first], *const end =
								   d + (some < to_wrap ? some
										       : to_wrap);

	for (; d < end; d += 4)
		__builtin_prefetch(d);
}

/*
 * The lines that the completions of this burst will be written to are with the sender: fetch them
 * while the application works.
 */
static inline void prefetch_returns(const struct rx_lane *l, uint32_t n)
{
	const uint32_t mask = l->view.ring_size - 1;

	prefetch_write(&l->view.words->returned);
	for (uint32_t i = 0; i < n; i += 16)
		prefetch_write(&l->view.completions[(l->returned + i) & mask]);
}

/*
 * Take one descriptor that came alone: latency matters, so the common case does without the loop.
 */
static inline bool take_alone(struct rx_lane *l, uint32_t end, struct dray_pkt *p)
{
	struct received d = load_newest(l, end);

	if (!UNCHECKED && unlikely(d.place >= l->view.pkt_slots ||
				   !plain(l->ledger[d.place], d.length,
					  plain_offset(d.offset | d.flags << 16), l->plain_limit)))
		return take_any(l, &d, end - 1, p);
	fill(l, &d, end - 1, slot_begin(l->ledger[d.place]), l->view.pkt_stride, d.place, p);
	slot_set(&l->ledger[d.place], SLOT_HELD);
	return true;
}

static unsigned rx_lane_recv(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n)
{
	struct rx_lane *l = LANE(owner);
	uint32_t at = l->head, end, before = l->returned;
	struct dray_pkt *p = pkts;
	uint64_t bytes = 0;

	owner_drain(owner);
	if (unlikely(owner_held(owner) + n > l->quota))
		return recv_copying(l, pkts, n,
				    l->quota > owner_held(owner) ? l->quota - owner_held(owner) : 0,
				    l->hold_copy);
	end = at + available(l, n);
	if (end == at)
		return 0;
	prefetch_returns(l, end - at);
	if (end - at == 1) {
		at = end;
		if (take_alone(l, end, p))
			bytes = (p++)->length;
	}
	while (at != end) {
		uint32_t to_wrap = l->view.ring_size - (at & (l->view.ring_size - 1)),
			 some = end - at < to_wrap ? end - at : to_wrap;
		uint32_t taken = take_plain(l, at, some, p, &bytes);

		p += taken;
		at += taken;
		if (taken != some) {
			struct received d = load(l, at);

			if (take_any(l, &d, at++, p))
				bytes += (p++)->length;
		}
	}
	prefetch_next(l, end, n);
	owner_lend(owner, (int32_t)(p - pkts));
	took(l, end, before, (unsigned)(p - pkts), bytes);
	return (unsigned)(p - pkts);
}

/*
 * Give back packet buffers that the application has: up to n, within the ring's end; returns how
 * many. A loop of its own, so that everything stays in registers.
 */
static __attribute__((noinline)) uint32_t give_back_plain(struct rx_lane *l, struct dray_pkt *p,
							  uint32_t n)
{
	_Atomic uint32_t *const first = &l->view.completions[l->returned & (l->view.ring_size - 1)],
				*const last = first + n, *to;
	const size_t slots = l->view.pkt_slots;
	struct dray_owner *const owner = &l->owner;
	uint64_t *const ledger = l->ledger;

#pragma GCC unroll 4
	for (to = first; to != last; to++, p++) {
		size_t index = p->index;

		if (unlikely(p->owner != owner))
			break;
		if (!UNCHECKED &&
		    unlikely(index >= slots || slot_state(ledger[index]) != SLOT_HELD))
			break;
		slot_set(&ledger[index], SLOT_THERE);
		p->owner = NULL;
		atomic_store_explicit(to, (uint32_t)index, memory_order_relaxed);
	}
	return (uint32_t)(to - first);
}

static void give_back_any(struct rx_lane *l, struct dray_pkt *p)
{
	uint32_t index = p->index;

	p->owner = NULL;
	if (index >= l->owner.slots || slot_state(l->ledger[index]) != SLOT_HELD) {
		count(l->owner.counters, COUNT_MISUSE, 1);
		return;
	}
	slot_set(&l->ledger[index], SLOT_THERE);
	complete(l, place_of(l, index));
}

static unsigned rx_lane_give_back(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n)
{
	struct rx_lane *l = LANE(owner);
	const uint32_t first = l->returned;
	unsigned i = 0;

	while (i < n && pkts[i].owner == owner) {
		uint32_t to_wrap = l->view.ring_size - (l->returned & (l->view.ring_size - 1)),
			 some = n - i < to_wrap ? n - i : to_wrap;
		uint32_t given = give_back_plain(l, &pkts[i], some);

		l->returned += given;
		i += given;
		if (given != some && pkts[i].owner == owner)
			give_back_any(l, &pkts[i++]);
	}
	if (unlikely(l->returned == first))
		return i;
	owner_lend(owner, (int32_t)(first - l->returned));
	rx_lane_return(l);
	return i;
}

static bool rx_lane_ready(struct dray_owner *owner)
{
	/* the sender may wait for buffers of other threads, while this one waits for the sender */
	owner_drain(owner);
	return available(LANE(owner), 1) > 0;
}

static bool rx_lane_arm(struct dray_owner *owner)
{
	struct rx_lane *l = LANE(owner);

	if (++l->bell_number == 0)
		l->bell_number = 1;
	atomic_store_explicit(&l->view.words->receiver_bell.value, l->bell_number,
			      memory_order_relaxed);
	/* seq_cst: pairs with the fence in ringer_ring after tx_lane_send (P3). */
	atomic_thread_fence(memory_order_seq_cst);
	return rx_lane_ready(owner);
}

static void rx_lane_disarm(struct dray_owner *owner)
{
	atomic_store_explicit(&LANE(owner)->view.words->receiver_bell.value, 0,
			      memory_order_relaxed);
}

static const struct owner_ops rx_lane_ops = {
	.recv = rx_lane_recv,
	.give_back = rx_lane_give_back,
	.ready = rx_lane_ready,
	.arm = rx_lane_arm,
	.disarm = rx_lane_disarm,
};

static const struct owner_ops rx_lane_copy_ops = {
	.recv = rx_lane_recv_copy,
	.give_back = rx_lane_give_back,
	.ready = rx_lane_ready,
	.arm = rx_lane_arm,
	.disarm = rx_lane_disarm,
};

static uint32_t flags_of(uint64_t features)
{
	uint32_t flags = DESC_END | DESC_CSUM_NEEDED | DESC_CSUM_GOOD;

	if (features & FEATURE_EXTRAS)
		flags |= DESC_VLAN | DESC_HASH;
	if (features & FEATURE_STAMPS)
		flags |= DESC_STAMP;
	return flags;
}

int rx_lane_new(const struct lane_view *view, const struct lane_options *options,
		struct rx_lane **lane)
{
	uint32_t slots = view->pkt_slots + view->msg_slots;
	struct rx_lane *l = aligned_alloc(LAYOUT_ALONE, (sizeof(*l) + LAYOUT_ALONE - 1) /
								LAYOUT_ALONE * LAYOUT_ALONE);
	int ret = -ENOMEM;

	if (!l)
		return ret;
	memset(l, 0, sizeof(*l));
	l->view = *view;
	l->head = l->seen_tail = l->bad_tail = l->returned = options->start;
	l->allowed_flags = flags_of(view->features);
	l->plain_limit = view->pkt_stride < UINT16_MAX + 1u ? view->pkt_stride : UINT16_MAX + 1u;
	l->quota = options->hold_quota ? options->hold_quota : UINT32_MAX;
	l->hold_copy = options->hold_copy;
	l->pool = options->pool;
	l->histogram = options->histogram;
	l->ringer = (struct ringer){
		.peer_sleeps = options->peer_sleeps,
		.fd = options->bell,
		.word = &view->words->sender_bell.value,
	};
	l->ledger = ledger_new(view, SLOT_THERE);
	if (l->ledger)
		ret = owner_init(&l->owner, options->rx_copy ? &rx_lane_copy_ops : &rx_lane_ops,
				 slots, options->generation, options->counters);
	if (ret) {
		rx_lane_free(l);
		return ret;
	}
	*lane = l;
	return 0;
}

void rx_lane_free(struct rx_lane *l)
{
	owner_destroy(&l->owner);
	free(l->ledger);
	free(l);
}
