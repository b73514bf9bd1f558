/* SPDX-License-Identifier: Apache-2.0 */
/* The sending end of a lane: allocate, publish, take back. */
#include "lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define HOLD_NS 1000000000u
#define LANE(h) ((struct tx_lane *)(h))
#define LENDABLE (DRAY_PKT_CSUM_NEEDED | DRAY_PKT_CSUM_GOOD | DRAY_PKT_VLAN | DRAY_PKT_HASH)

static_assert((int)DRAY_PKT_CSUM_NEEDED == DESC_CSUM_NEEDED &&
		      (int)DRAY_PKT_CSUM_GOOD == DESC_CSUM_GOOD &&
		      (int)DRAY_PKT_VLAN == DESC_VLAN && (int)DRAY_PKT_HASH == DESC_HASH,
	      "flags of packets are those of descriptors");

static void slot_is_back(struct tx_lane *l, uint32_t index)
{
	slot_set(&l->ledger[index], SLOT_FREE);
	if (likely(index < l->view.pkt_slots))
		l->free_pkts[l->free_pkt_count++] = index;
	else
		l->free_msgs[l->free_msg_count++] = index;
}

/* A completion that is not simply a lent packet slot. */
static void reap_odd(struct tx_lane *l, uint32_t place)
{
	uint32_t region = place >> PLACE_SLOT_BITS, slot = place & PLACE_SLOT_MASK;
	uint32_t index = region == REGION_MESSAGES ? l->view.pkt_slots + slot : slot;

	if (region > REGION_MESSAGES ||
	    slot >= (region == REGION_MESSAGES ? l->view.msg_slots : l->view.pkt_slots))
		violation(l->owner.counters, DRAY_BAD_RETURN_SLOT);
	else if (slot_state(l->ledger[index]) != SLOT_LENT)
		violation(l->owner.counters, DRAY_BAD_RETURN_FORGED);
	else
		slot_is_back(l, index);
}

/*
 * Take back lent packet slots: n completions from `from` on, within the ring's end; returns how
 * many, up to the first that is odd. A loop of its own, so that everything stays in registers.
 */
static __attribute__((noinline)) uint32_t reap_plain(struct tx_lane *l, uint32_t from, uint32_t n)
{
	const _Atomic uint32_t *const first = &l->view.completions[from & (l->view.ring_size - 1)],
				      *const last = first + n, *c;
	uint32_t *top = l->free_pkts + l->free_pkt_count;
	const size_t slots = l->view.pkt_slots;
	uint64_t *const ledger = l->ledger;

	for (c = first; c != last; c++) {
		size_t place = atomic_load_explicit(c, memory_order_relaxed);

		if (!UNCHECKED &&
		    unlikely(place >= slots || slot_state(ledger[place]) != SLOT_LENT))
			break;
		slot_set(&ledger[place], SLOT_FREE);
		*top++ = (uint32_t)place;
	}
	l->free_pkt_count += (uint32_t)(c - first);
	return (uint32_t)(c - first);
}

/* Look how many completions there are now. */
static void see_returned(struct tx_lane *l)
{
	/* acquire: pairs with the release in rx_lane_return (P2). */
	uint32_t returned =
		atomic_load_explicit(&l->view.words->returned.value, memory_order_acquire);

	if (unlikely(returned - l->returned > l->view.ring_size)) {
		if (returned != l->bad_returned)
			violation(l->owner.counters, DRAY_BAD_RETURN_INDEX);
		l->bad_returned = returned;
		return;
	}
	l->seen_returned = returned;
}

/* How many of the completions that were seen can be taken in one run, up to `wanted`. */
static inline uint32_t returned_run(const struct tx_lane *l, uint32_t wanted)
{
	uint32_t n = l->seen_returned - l->returned,
		 to_wrap = l->view.ring_size - (l->returned & (l->view.ring_size - 1));

	n = n < to_wrap ? n : to_wrap;
	return n < wanted ? n : wanted;
}

static void reap_next_odd(struct tx_lane *l)
{
	reap_odd(l,
		 atomic_load_explicit(&l->view.completions[l->returned++ & (l->view.ring_size - 1)],
				      memory_order_relaxed));
}

static void tx_lane_reap(struct tx_lane *l)
{
	see_returned(l);
	while (l->returned != l->seen_returned) {
		uint32_t some = returned_run(l, UINT32_MAX),
			 taken = reap_plain(l, l->returned, some);

		l->returned += taken;
		if (unlikely(taken != some))
			reap_next_odd(l);
	}
}

/* Nothing is free: begin to measure for how long. */
static void note_full(struct tx_lane *l)
{
	uint64_t now = clock_coarse_ns();

	if (l->full_since == 0)
		l->full_since = now;
	else if (l->full_since != UINT64_MAX && now - l->full_since > HOLD_NS) {
		violation(l->owner.counters, DRAY_BAD_HOLD);
		atomic_store_explicit(&l->full_counted, true, memory_order_relaxed);
		l->full_since = UINT64_MAX; /* once per spell */
	}
}

static unsigned take_messages(struct tx_lane *l, struct dray_pkt *pkts, unsigned n, uint32_t size)
{
	const struct lane_view *v = &l->view;
	unsigned i;

	if (!v->msg_slots || size > v->msg_stride - v->msg_headroom)
		return 0;
	if (l->free_msg_count < n)
		tx_lane_reap(l);
	for (i = 0; i < n && l->free_msg_count; i++) {
		uint32_t index = l->free_msgs[--l->free_msg_count];

		slot_set(&l->ledger[index], SLOT_WITH_APPLICATION);
		pkts[i] = (struct dray_pkt){
			.data = slot_begin(l->ledger[index]) + v->msg_headroom,
			.room = v->msg_stride - v->msg_headroom,
			.headroom = v->msg_headroom,
			.owner = &l->owner,
			.index = index,
		};
	}
	return i;
}

/*
 * The lines that tx_lane_send will write to are with the receiver, and take longer to come than a
 * burst lasts: they are fetched one burst ahead. Here: n descriptors from an index on.
 */
static inline void prefetch_ring(const struct tx_lane *l, uint32_t from, uint32_t n)
{
	const uint32_t at = from & (l->view.ring_size - 1), to_wrap = l->view.ring_size - at;
	const struct descriptor *d = &l->view.ring[at], *const end =
								d + (n < to_wrap ? n : to_wrap);

	for (; d < end; d += 4)
		prefetch_write(d);
}

/*
 * Hand out lent packet slots straight from the completion ring: n from l->returned on, within its
 * end; returns how many, up to the first that is odd. The slot that came back last is the warmest
 * in the cache. A loop of its own, so that everything stays in registers.
 */
static __attribute__((noinline)) uint32_t take_returned(struct tx_lane *l, struct dray_pkt *p,
							uint32_t n)
{
	const _Atomic uint32_t
		*const first = &l->view.completions[l->returned & (l->view.ring_size - 1)],
		       *const last = first + n, *c;
	const uint32_t headroom = l->view.pkt_headroom;
	const uint64_t room_headroom = (l->view.pkt_stride - headroom) | (uint64_t)headroom << 32;
	const size_t slots = l->view.pkt_slots;
	uint64_t *const ledger = l->ledger;

#pragma GCC unroll 4
	for (c = first; c != last; c++, p++) {
		size_t place = atomic_load_explicit(c, memory_order_relaxed);
		uint8_t *data;
		uint64_t word;

		if (!UNCHECKED && unlikely(place >= slots))
			break;
		word = ledger[place];
		if (!UNCHECKED) {
			if (unlikely((int64_t)word >= 0)) /* not SLOT_LENT */
				break;
			word ^= SLOT_SIGN; /* SLOT_WITH_APPLICATION */
			ledger[place] = word;
		}
		data = (uint8_t *)(uintptr_t)word + headroom;
		prefetch_write(data);
		pkt_set(p, data, &l->owner, room_headroom);
		store_words(&p->index, (words){place, 0});
	}
	return (uint32_t)(c - first);
}

/* Hand out slots of the free list. */
static uint32_t take_free(struct tx_lane *l, struct dray_pkt *pkts, uint32_t n)
{
	const uint32_t headroom = l->view.pkt_headroom;
	const uint64_t room_headroom = (l->view.pkt_stride - headroom) | (uint64_t)headroom << 32;

	if (l->free_pkt_count < n)
		n = l->free_pkt_count;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t index = l->free_pkts[--l->free_pkt_count];
		uint8_t *data = slot_begin(l->ledger[index]) + headroom;

		prefetch_write(data);
		slot_set(&l->ledger[index], SLOT_WITH_APPLICATION);
		pkt_set(&pkts[i], data, &l->owner, room_headroom);
		store_words(&pkts[i].index, (words){index, 0});
	}
	return n;
}

/* Prefetch the completions of the burst after the next, if they are known to exist. */
static inline void prefetch_returned(const struct tx_lane *l, uint32_t n)
{
	const uint32_t mask = l->view.ring_size - 1;

	if (l->seen_returned - l->returned < 2 * n)
		return;
	for (uint32_t i = n; i < 2 * n; i += 16)
		__builtin_prefetch(&l->view.completions[(l->returned + i) & mask]);
}

#define FEW 4

/* Prefetch the buffers that are handed out next: if packets are sent one by one, each line is
 * fetched while the packet before it is on its way. */
static inline void prefetch_buffers(const struct tx_lane *l, uint32_t n)
{
	const uint32_t mask = l->view.ring_size - 1, known = l->seen_returned - l->returned;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t next = i - known;

		if (i < known)
			next = atomic_load_explicit(&l->view.completions[(l->returned + i) & mask],
						    memory_order_relaxed);
		else if (next < l->free_pkt_count)
			next = l->free_pkts[l->free_pkt_count - 1 - next];
		else
			return;
		if (next < l->view.pkt_slots)
			prefetch_write(slot_begin(l->ledger[next]) + l->view.pkt_headroom);
	}
}

/*
 * Use completions first, then the free list. Read the peer's index only if both fall short, and
 * only once: it is a likely cache miss, and a hostile peer must not keep this thread looping.
 */
static unsigned take_packets(struct tx_lane *l, struct dray_pkt *pkts, unsigned n)
{
	bool looked = false;
	unsigned got = 0;

	while (got < n) {
		uint32_t some, taken;

		if (l->seen_returned - l->returned + l->free_pkt_count < n - got && !looked) {
			see_returned(l);
			looked = true;
		}
		some = returned_run(l, n - got);
		if (some == 0)
			break;
		taken = take_returned(l, &pkts[got], some);
		l->returned += taken;
		got += taken;
		if (unlikely(taken != some))
			reap_next_odd(l);
	}
	if (got < n)
		got += take_free(l, &pkts[got], n - got);
	prefetch_ring(l, l->tail + got, got);
	prefetch_returned(l, got);
	if (got <= FEW)
		prefetch_buffers(l, got);
	return got;
}

static unsigned tx_lane_alloc(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n,
			      uint32_t size)
{
	struct tx_lane *l = LANE(owner);
	unsigned got;

	owner_drain(owner);
	if (likely(size <= l->view.pkt_stride - l->view.pkt_headroom))
		got = take_packets(l, pkts, n);
	else
		got = take_messages(l, pkts, n, size);
	if (unlikely(got < n)) {
		count(owner->counters, COUNT_TX_NO_BUFFER, n - got);
		if (got == 0)
			note_full(l);
	}
	if (got)
		l->full_since = 0;
	owner_lend(owner, (int32_t)got);
	return got;
}

static unsigned tx_lane_give_back(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n)
{
	struct tx_lane *l = LANE(owner);
	int32_t back = 0;
	unsigned i;

	for (i = 0; i < n && pkts[i].owner == owner; i++) {
		uint32_t index = pkts[i].index;

		pkts[i].owner = NULL;
		if (unlikely(index >= owner->slots ||
			     slot_state(l->ledger[index]) != SLOT_WITH_APPLICATION)) {
			count(owner->counters, COUNT_MISUSE, 1);
			continue;
		}
		slot_is_back(l, index);
		back++;
	}
	owner_lend(owner, -back);
	return i;
}

static void put_extension(struct tx_lane *l, uint32_t at, const struct dray_pkt *p)
{
	struct extension *e = &l->view.extensions[at & (l->view.ring_size - 1)];

	atomic_store_explicit(&e->hash_vlan, p->hash | (uint64_t)p->vlan << 32,
			      memory_order_relaxed);
}

/* Write one descriptor at index `at`; false if the application's packet is not valid. */
static bool put(struct tx_lane *l, uint32_t at, const struct dray_pkt *p)
{
	struct descriptor *d = &l->view.ring[at & (l->view.ring_size - 1)];
	uint32_t index = p->index,
		 size = index < l->view.pkt_slots ? l->view.pkt_stride : l->view.msg_stride, place,
		 flags = (p->flags & LENDABLE) | DESC_END;
	uint64_t offset;

	if (unlikely(index >= l->owner.slots ||
		     slot_state(l->ledger[index]) != SLOT_WITH_APPLICATION))
		return false;
	offset = (uint64_t)((uint8_t *)p->data - slot_begin(l->ledger[index]));
	if (unlikely(p->length == 0 || offset >= size || offset > UINT16_MAX ||
		     offset + p->length > size))
		return false;
	if (unlikely(flags & (DESC_VLAN | DESC_HASH))) {
		if (l->view.features & FEATURE_EXTRAS)
			put_extension(l, at, p);
		else
			flags &= ~(uint32_t)(DESC_VLAN | DESC_HASH);
	}
	place = index;
	if (unlikely(index >= l->view.pkt_slots))
		place = (index - l->view.pkt_slots) | (uint32_t)REGION_MESSAGES << PLACE_SLOT_BITS;
	slot_set(&l->ledger[index], SLOT_LENT);
	atomic_store_explicit(&d->place_length, place | (uint64_t)p->length << 32,
			      memory_order_relaxed);
	atomic_store_explicit(&d->offset_flags_meta,
			      offset | (uint64_t)flags << 16 | (uint64_t)p->meta << 32,
			      memory_order_relaxed);
	return true;
}

/* Stamp the first descriptor of the burst, if it is time to: one in `period` packets. */
static void stamp(struct tx_lane *l, uint32_t first, uint32_t n, uint32_t period)
{
	struct descriptor *d = &l->view.ring[first & (l->view.ring_size - 1)];
	struct extension *e = &l->view.extensions[first & (l->view.ring_size - 1)];
	uint64_t word;

	if (l->until_stamp > period)
		l->until_stamp = period; /* the broker shortened it */
	if (l->until_stamp > n) {
		l->until_stamp -= n;
		return;
	}
	l->until_stamp = period;
	/* The peer may have changed this word meanwhile; only its own descriptor can suffer. */
	word = atomic_load_explicit(&d->offset_flags_meta, memory_order_relaxed);
	atomic_store_explicit(&e->stamp, clock_ticks(), memory_order_relaxed);
	atomic_store_explicit(&d->offset_flags_meta, word | (uint64_t)DESC_STAMP << 16,
			      memory_order_relaxed);
}

/*
 * Copy the last descriptor of this burst next to the tail that publishes it. While the copy
 * changes, newest_tail has a value that no receiver has: half the range away.
 */
static inline void put_newest(struct tx_lane *l, uint32_t tail)
{
	const struct descriptor *from = &l->view.ring[(tail - 1) & (l->view.ring_size - 1)];
	struct lane_words *w = l->view.words;

	atomic_store_explicit(&w->newest_tail, tail ^ 0x80000000u, memory_order_relaxed);
	/* release: pairs with the fence in load_newest (P5): who reads the new words does not read
	 * the old newest_tail after them. */
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&w->newest.place_length,
			      atomic_load_explicit(&from->place_length, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&w->newest.offset_flags_meta,
			      atomic_load_explicit(&from->offset_flags_meta, memory_order_relaxed),
			      memory_order_relaxed);
	/* release: pairs with the acquire in load_newest (P5). */
	atomic_store_explicit(&w->newest_tail, tail, memory_order_release);
}

static void misused(struct tx_lane *l, struct dray_pkt *p)
{
	count(l->owner.counters, COUNT_MISUSE, 1);
	if (p->index < l->owner.slots && slot_state(l->ledger[p->index]) == SLOT_WITH_APPLICATION) {
		slot_is_back(l, p->index);
		owner_lend(&l->owner, -1);
	}
}

/* Write a descriptor in one store. */
static inline void put_descriptor(struct descriptor *d, uint32_t place, uint32_t length,
				  uint32_t offset_flags, uint32_t meta)
{
#ifdef SEES_ATOMICS_ONLY
	atomic_store_explicit(&d->place_length, place | (uint64_t)length << 32,
			      memory_order_relaxed);
	atomic_store_explicit(&d->offset_flags_meta, offset_flags | (uint64_t)meta << 32,
			      memory_order_relaxed);
#else
	typedef uint32_t halves __attribute__((vector_size(16)));

	store_words(d, (words)(halves){place, length, offset_flags, meta});
#endif
}

/*
 * Write descriptors while they are plain: packet buffers of the application's, with bounds that
 * fit, and no extras. Up to n and not over the end of the ring; returns how many. put() looks again
 * at a packet that is not plain. A loop of its own, so that everything stays in registers.
 */
static __attribute__((noinline)) unsigned put_all_plain(struct tx_lane *l, uint32_t tail,
							const struct dray_pkt *pkts, unsigned n,
							uint64_t *bytes)
{
	const size_t slots = l->view.pkt_slots, stride = l->view.pkt_stride;
	const uint32_t to_wrap = l->view.ring_size - (tail & (l->view.ring_size - 1));
	const struct dray_pkt *p = pkts, *const end = pkts + (n < to_wrap ? n : to_wrap);
	const struct dray_owner *const owner = &l->owner;
	struct descriptor *d = &l->view.ring[tail & (l->view.ring_size - 1)];
	uint64_t *const ledger = l->ledger;
	uint64_t sum = 0;

	for (; p != end; p++, d++) {
		size_t index = p->index, length = p->length;
		uint32_t flags = DESC_END;
		uint64_t offset;

		if (unlikely(p->owner != owner))
			break;
		if (unlikely(p->flags)) {
			if (p->flags & (DESC_VLAN | DESC_HASH))
				break;
			flags |= p->flags & LENDABLE;
		}
		if (!UNCHECKED && unlikely(index >= slots))
			break;
		/* Also out of range if the word has a state in it, since the application does not
		 * have the slot. */
		offset = (uintptr_t)p->data - ledger[index];
		/* length - 1 wraps for 0, and is then too long. */
		if (!UNCHECKED &&
		    unlikely(offset > UINT16_MAX || offset + (uint32_t)(length - 1) >= stride))
			break;
		slot_set(&ledger[index], SLOT_LENT);
		sum += length;
		/* Else the compiler loads both at once, and the CPU has no such word yet: the
		 * application has just stored the length. */
		HIDE(length);
		put_descriptor(d, (uint32_t)index, (uint32_t)length, (uint32_t)offset | flags << 16,
			       p->meta);
	}
	*bytes += sum;
	return (unsigned)(p - pkts);
}

/* Consume packets as long as they belong to this owner; returns how many. Invalid ones are counted.
 */
static unsigned tx_lane_send(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n)
{
	struct tx_lane *l = LANE(owner);
	uint32_t tail = l->tail, sent, period;
	uint64_t bytes = 0;
	unsigned i = 0;

	prefetch_write(&l->view.words->tail); /* it takes as long to come as the descriptors take to
						 be written */
	for (;;) {
		unsigned some = put_all_plain(l, tail, &pkts[i], n - i, &bytes);

		tail += some;
		i += some;
		if (i == n || pkts[i].owner != owner)
			break;
		if (some && (tail & (l->view.ring_size - 1)) == 0)
			continue; /* it stopped at the end of the ring */
		if (put(l, tail, &pkts[i])) {
			bytes += pkts[i].length;
			tail++;
		} else {
			misused(l, &pkts[i]);
		}
		i++;
	}
	sent = tail - l->tail;
	if (unlikely(sent == 0))
		return i;
	period = atomic_load_explicit(&l->stamp_period, memory_order_relaxed);
	if (period)
		stamp(l, l->tail, sent, period);
	l->tail = tail;
	put_newest(l, tail);
	/* release: pairs with the acquire in available (P1). */
	atomic_store_explicit(&l->view.words->tail, tail, memory_order_release);
	if (l->ringer.peer_sleeps)
		ringer_ring(&l->ringer);
	owner_lend(owner, -(int32_t)sent);
	count(owner->counters, COUNT_TX_PACKETS, sent);
	count(owner->counters, COUNT_TX_BYTES, bytes);
	return i;
}

static bool tx_lane_ready(struct dray_owner *owner)
{
	struct tx_lane *l = LANE(owner);

	owner_drain(owner);
	if (l->free_pkt_count == 0)
		tx_lane_reap(l);
	return l->free_pkt_count > 0;
}

static bool tx_lane_message_ready(struct dray_owner *owner)
{
	struct tx_lane *l = LANE(owner);

	if (l->free_msg_count == 0)
		tx_lane_reap(l);
	return l->free_msg_count > 0;
}

static bool tx_lane_arm(struct dray_owner *owner)
{
	struct tx_lane *l = LANE(owner);

	if (++l->bell_number == 0)
		l->bell_number = 1;
	atomic_store_explicit(&l->view.words->sender_bell.value, l->bell_number,
			      memory_order_relaxed);
	/* seq_cst: pairs with the fence in ringer_ring after rx_lane_return (P4). */
	atomic_thread_fence(memory_order_seq_cst);
	return tx_lane_ready(owner);
}

static void tx_lane_disarm(struct dray_owner *owner)
{
	atomic_store_explicit(&LANE(owner)->view.words->sender_bell.value, 0, memory_order_relaxed);
}

static const struct owner_ops tx_lane_ops = {
	.alloc = tx_lane_alloc,
	.send = tx_lane_send,
	.give_back = tx_lane_give_back,
	.ready = tx_lane_ready,
	.message_ready = tx_lane_message_ready,
	.arm = tx_lane_arm,
	.disarm = tx_lane_disarm,
};

static void fill_stacks(struct tx_lane *l)
{
	const struct lane_view *v = &l->view;

	for (uint32_t i = v->pkt_slots; i-- > 0;)
		l->free_pkts[l->free_pkt_count++] = i;
	for (uint32_t i = v->msg_slots; i-- > 0;)
		l->free_msgs[l->free_msg_count++] = v->pkt_slots + i;
}

int tx_lane_new(const struct lane_view *view, const struct lane_options *options,
		struct tx_lane **lane)
{
	uint32_t slots = view->pkt_slots + view->msg_slots;
	struct tx_lane *l = aligned_alloc(LAYOUT_ALONE, (sizeof(*l) + LAYOUT_ALONE - 1) /
								LAYOUT_ALONE * LAYOUT_ALONE);
	int ret = -ENOMEM;

	if (!l)
		return ret;
	memset(l, 0, sizeof(*l));
	l->view = *view;
	l->tail = l->returned = l->seen_returned = l->bad_returned = options->start;
	if (options->sample_shift <= SAMPLE_SHIFT_MAX)
		tx_lane_set_sampling(l, l->until_stamp = 1u << options->sample_shift);
	l->ringer = (struct ringer){
		.peer_sleeps = options->peer_sleeps,
		.first = true,
		.fd = options->bell,
		.word = &view->words->receiver_bell.value,
	};
	l->ledger = ledger_new(view, SLOT_FREE);
	l->free_pkts = calloc(slots, sizeof(*l->free_pkts));
	if (l->ledger && l->free_pkts)
		ret = owner_init(&l->owner, &tx_lane_ops, slots, options->generation,
				 options->counters);
	if (ret) {
		tx_lane_free(l);
		return ret;
	}
	l->free_msgs = l->free_pkts + view->pkt_slots;
	fill_stacks(l);
	*lane = l;
	return 0;
}

void tx_lane_free(struct tx_lane *l)
{
	owner_destroy(&l->owner);
	free(l->ledger);
	free(l->free_pkts);
	free(l);
}
