/* SPDX-License-Identifier: Apache-2.0 */
/* One queue in one direction over shared memory: its sending end and its receiving end. */
#ifndef DRAY_LANE_H
#define DRAY_LANE_H

#include "geometry.h"
#include "owner.h"

struct pool;

#ifdef DRAY_BENCH_UNCHECKED
extern const char lane_unchecked[];
#endif

/*
 * The view that both ends of a lane have; made from the checked geometry, never from shared memory.
 */
struct lane_view {
	struct lane_words *words;
	struct descriptor *ring;
	struct extension *extensions;
	_Atomic uint32_t *completions;
	uint8_t *packets, *messages;
	uint32_t ring_size, pkt_slots, pkt_stride, pkt_headroom, msg_slots, msg_stride,
		msg_headroom;
	uint32_t features;
};

void lane_view_init(struct lane_view *view, void *memory, const struct geometry *geometry,
		    const struct lane_offsets *offsets, unsigned direction, unsigned queue,
		    uint64_t features);

/* How an end of a lane is set up. */
struct lane_options {
	bool peer_sleeps; /* the peer's mode is not busy */
	int bell;	  /* to ring the peer */
	uint32_t start;	  /* first index; 0 but in tests of wrap-around */
	uint32_t sample_shift;
	uint32_t hold_quota; /* receiving: 0 is all */
	bool hold_copy;
	bool rx_copy;
	struct pool *pool;	     /* for copies; NULL: none */
	_Atomic uint64_t *histogram; /* receiving: of one-way latency; NULL: none */
	struct generation *generation;
	struct counters *counters;
};

/* What rings the peer, on either side. */
struct ringer {
	bool peer_sleeps;
	/*
	 * ring whatever the word says: the peer may sleep, and not have seen yet that there is this
	 * lane
	 */
	bool first;
	int fd;
	uint32_t rung;
	const _Atomic uint32_t *word; /* the peer's */
};

/* Called after publishing. */
void ringer_ring(struct ringer *ringer);

/*
 * The ledger has a word for each slot: its address, and its state in the top byte, which no address
 * uses. One load reads both. Of the two states that the common case expects, one is 0, so that the
 * word is the address, and the other is the sign.
 */
enum slot_state {
	SLOT_WITH_APPLICATION = 0,
	SLOT_FREE = 0x40,
	SLOT_LENT = 0x80, /* sending */
	SLOT_THERE = 0,	  /* receiving: with the sender, or on its way */
	SLOT_HELD = 0x80,
};

#define SLOT_STATE_SHIFT 56
#define SLOT_SIGN (1ull << 63)

static inline enum slot_state slot_state(uint64_t word)
{
	return (enum slot_state)(word >> SLOT_STATE_SHIFT);
}

static inline uint8_t *slot_begin(uint64_t word)
{
	return (uint8_t *)(uintptr_t)(word & ((1ull << SLOT_STATE_SHIFT) - 1));
}

/* By its byte alone: the rest of the word need not be known. */
static inline void slot_set(uint64_t *word, enum slot_state state)
{
	if (!UNCHECKED)
		((uint8_t *)word)[SLOT_STATE_SHIFT / 8] = (uint8_t)state;
}

/* One word per slot, packets first, all in the same state; NULL: no memory. */
uint64_t *ledger_new(const struct lane_view *view, enum slot_state state);

/* The sending end. */
struct tx_lane {
	struct dray_owner owner;
	struct lane_view view;
	uint64_t *ledger;
	uint32_t *free_pkts; /* stacks: the slot that came back last is the warmest */
	uint32_t *free_msgs;
	uint32_t free_pkt_count, free_msg_count;
	uint32_t tail;		/* descriptors published */
	uint32_t returned;	/* completions taken */
	uint32_t seen_returned; /* the peer's word, as last seen and found in range */
	uint32_t bad_returned;
	uint32_t until_stamp;
	_Atomic uint32_t stamp_period; /* 0: none */
	uint32_t bell_number;
	uint64_t full_since; /* ns; 0: something came back since */
	_Atomic bool full_counted;
	struct ringer ringer;
};

/* The receiving end. */
struct rx_lane {
	struct dray_owner owner;
	struct lane_view view;
	uint64_t *ledger;
	uint32_t head;	    /* descriptors taken */
	uint32_t seen_tail; /* the peer's word, as last seen and found in range */
	uint32_t bad_tail;
	uint32_t returned; /* completions published */
	uint32_t allowed_flags;
	uint32_t plain_limit; /* no packet that the common case takes ends beyond; 65536 at most */
	uint32_t quota;
	bool hold_copy;
	struct pool *pool;
	_Atomic uint64_t *histogram;
	uint32_t bell_number;
	struct ringer ringer;
};

int tx_lane_new(const struct lane_view *view, const struct lane_options *options,
		struct tx_lane **lane);
int rx_lane_new(const struct lane_view *view, const struct lane_options *options,
		struct rx_lane **lane);
void tx_lane_free(struct tx_lane *lane);
void rx_lane_free(struct rx_lane *lane);

/* Stamp one packet in `period`, 0: none. From any thread. */
static inline void tx_lane_set_sampling(struct tx_lane *lane, uint32_t period)
{
	if (lane->view.features & FEATURE_STAMPS)
		atomic_store_explicit(&lane->stamp_period, period, memory_order_relaxed);
}

/* Whether the peer has held all packet buffers for over a second; true once per such spell. */
bool tx_lane_starved(struct tx_lane *lane);

#endif
