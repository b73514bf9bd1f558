/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token bucket, counted in time: what has been sent beyond the rate is a debt, which time pays
 * off. A packet may leave as long as there is none, and may then cause one: so no packet is too
 * long for a bucket, and on average the rate holds.
 */
#ifndef DRAY_BUCKET_H
#define DRAY_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#define BUCKET_SHIFT 16			 /* a debt counts 2^-16 ns */
#define BUCKET_PAUSE (1ull << 40)	 /* ns: a longer time pays no more; about 18 minutes */
#define BUCKET_DEBT_MAX (INT64_MAX >> 2) /* about 10 hours */

struct bucket {
	uint64_t cost; /* of a byte; 0: no limit */
	int64_t debt;  /* negative: saved, down to -depth */
	int64_t depth;
	uint64_t seen; /* ns, when the debt was last counted */
};

static inline int64_t bucket_price(const struct bucket *b, uint64_t bytes)
{
	unsigned __int128 price = (unsigned __int128)b->cost * bytes;

	return price > BUCKET_DEBT_MAX ? BUCKET_DEBT_MAX : (int64_t)price;
}

/* rate in bit/s, 0: no limit; burst in bytes. It begins full. */
static inline void bucket_init(struct bucket *b, uint64_t rate, uint64_t burst)
{
	*b = (struct bucket){0};
	if (rate == 0)
		return;
	b->cost = (8000000000ull << BUCKET_SHIFT) / rate;
	if (b->cost == 0)
		b->cost = 1;
	b->depth = bucket_price(b, burst);
	b->debt = -b->depth;
}

static inline void bucket_update(struct bucket *b, uint64_t now)
{
	uint64_t passed = now - b->seen;

	if (b->cost == 0 || now <= b->seen)
		return;
	b->seen = now;
	b->debt -= (int64_t)((passed < BUCKET_PAUSE ? passed : BUCKET_PAUSE) << BUCKET_SHIFT);
	if (b->debt < -b->depth)
		b->debt = -b->depth;
}

/* After bucket_update: whether a packet may leave. */
static inline bool bucket_open(const struct bucket *b)
{
	return b->debt <= 0;
}

/* After bucket_update: a packet leaves. */
static inline void bucket_charge(struct bucket *b, uint64_t bytes)
{
	if (b->cost == 0)
		return;
	b->debt += bucket_price(b, bytes);
	if (b->debt > BUCKET_DEBT_MAX)
		b->debt = BUCKET_DEBT_MAX;
}

/* After bucket_update: ns until the bucket is open. */
static inline uint64_t bucket_wait(const struct bucket *b)
{
	return b->debt <= 0 ? 0 : ((uint64_t)b->debt >> BUCKET_SHIFT) + 1;
}

#endif
