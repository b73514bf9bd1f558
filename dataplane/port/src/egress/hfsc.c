/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Service curves of one level, as in the hierarchical fair service curve algorithm (Stoica, Zhang,
 * Ng, 1997). A class that becomes active is granted its peak rate for a time, then its rate: its
 * packets get deadlines from that curve, and the earliest deadline sends first, of packets that are
 * eligible. What the guarantees leave is shared by virtual time, in proportion to the same curves.
 */
#include "scheduler.h"

#define SLOPE_SHIFT 32
#define ROUNDING 1 /* bytes: a curve's value is rounded down */

/* bytes in 2^32 ns at a rate in bit/s */
static uint64_t slope_of(uint64_t rate)
{
	unsigned __int128 slope = ((unsigned __int128)rate << SLOPE_SHIFT) / 8000000000ull;

	return slope ? (uint64_t)slope : 1;
}

static uint64_t bytes_in(uint64_t ns, uint64_t slope)
{
	return (uint64_t)((unsigned __int128)ns * slope >> SLOPE_SHIFT);
}

static uint64_t time_of(uint64_t bytes, uint64_t slope)
{
	return (uint64_t)(((unsigned __int128)bytes << SLOPE_SHIFT) / slope);
}

/* The class's curve, from a point on. */
static struct curve curve_at(const struct wire_class *plan, uint64_t x, uint64_t y)
{
	struct curve v = {.x = x, .y = y, .slow = slope_of(plan->rate)};

	v.fast = v.slow;
	if (plan->peak_ns) {
		v.fast = slope_of(plan->peak);
		v.dx = plan->peak_ns;
		v.dy = bytes_in(v.dx, v.fast);
	}
	return v;
}

/* The bytes of a curve at a time. */
static uint64_t curve_bytes(const struct curve *v, uint64_t x)
{
	if (x <= v->x)
		return v->y;
	x -= v->x;
	if (x <= v->dx)
		return v->y + bytes_in(x, v->fast);
	return v->y + v->dy + bytes_in(x - v->dx, v->slow);
}

/* The time at which a curve has so many bytes. */
static uint64_t curve_time(const struct curve *v, uint64_t y)
{
	if (y <= v->y)
		return v->x;
	y -= v->y;
	if (y <= v->dy)
		return v->x + time_of(y, v->fast);
	return v->x + v->dx + time_of(y - v->dy, v->slow);
}

/*
 * The lower of a curve and of the class's own from (x, y) on. Two concave curves of the same slopes
 * cross at most once: where the old one, already slow, has as many bytes as the new one.
 */
static void curve_lower(struct curve *old, const struct wire_class *plan, uint64_t x, uint64_t y)
{
	struct curve fresh = curve_at(plan, x, y);
	uint64_t at_begin = curve_bytes(old, x), cross, ahead;

	if (fresh.fast <= fresh.slow) {
		if (at_begin >= y)
			*old = fresh;
		return;
	}
	if (at_begin <= y)
		return;
	if (curve_bytes(old, x + fresh.dx) + ROUNDING >= y + fresh.dy) {
		*old = fresh;
		return;
	}
	/* The new one gains fast - slow on the old one; while that is fast too, they are parallel.
	 */
	ahead = at_begin - y;
	cross = time_of(ahead, fresh.fast - fresh.slow);
	if (old->x + old->dx > x)
		cross += old->x + old->dx - x;
	fresh.dx = cross;
	fresh.dy = bytes_in(cross, fresh.fast);
	*old = fresh;
}

static void hfsc_init(struct scheduler *s)
{
	for (uint32_t i = 0; i < s->plan.classes; i++) {
		struct class *c = &s->classes[i];

		bucket_init(&c->ceil, c->plan->ceil, s->plan.burst);
		c->hfsc.deadline = curve_at(c->plan, 0, 0);
		c->hfsc.share = curve_at(c->plan, 0, 0);
		c->hfsc.eligible = c->hfsc.deadline;
	}
}

/* The class's next packet: when it is eligible, and its deadline. */
static void next_packet(struct class *c)
{
	struct hfsc *h = &c->hfsc;
	uint64_t length = c->held == ITEM_NONE ? 0 : item_length(c, c->held);

	h->from = curve_time(&h->eligible, h->done);
	h->due = curve_time(&h->deadline, h->done + length);
	h->turn = curve_time(&h->share, h->total);
}

static void hfsc_waiting(struct class *c, uint64_t now)
{
	struct hfsc *h = &c->hfsc;
	uint64_t turn = c->scheduler->turned;

	curve_lower(&h->deadline, c->plan, now, h->done);
	h->eligible = h->deadline;
	if (h->eligible.fast <=
	    h->eligible.slow) { /* convex: what is promised later is sent early */
		h->eligible.dx = 0;
		h->eligible.dy = 0;
	}
	/* It begins where the others are, and gets nothing for the time in which it was idle. */
	curve_lower(&h->share, c->plan, turn > h->turn ? turn : h->turn, h->total);
	next_packet(c);
}

/* Of the eligible ones, the class with the earliest deadline. */
static uint32_t by_deadline(const struct scheduler *s, uint64_t now)
{
	uint32_t best = CLASS_NONE;

	for (uint32_t i = 0; i < s->plan.classes; i++) {
		const struct class *c = &s->classes[i];

		if (class_waits(c) && c->hfsc.from <= now &&
		    (best == CLASS_NONE || c->hfsc.due < s->classes[best].hfsc.due))
			best = i;
	}
	return best;
}

/* Of those below their ceil, the class with the least virtual time. */
static uint32_t by_share(struct scheduler *s, uint64_t now, uint64_t *wait)
{
	uint32_t best = CLASS_NONE;

	for (uint32_t i = 0; i < s->plan.classes; i++) {
		struct class *c = &s->classes[i];
		uint64_t ns;

		if (!class_waits(c))
			continue;
		bucket_update(&c->ceil, now);
		ns = bucket_wait(&c->ceil);
		if (ns == 0 && (best == CLASS_NONE || c->hfsc.turn < s->classes[best].hfsc.turn))
			best = i;
		if (c->hfsc.from > now && c->hfsc.from - now < ns)
			ns = c->hfsc.from - now;
		*wait = ns < *wait ? ns : *wait;
	}
	return best;
}

static uint32_t hfsc_pick(struct scheduler *s, uint64_t now, uint64_t *wait)
{
	uint32_t best;

	*wait = bucket_wait(&s->root);
	if (*wait)
		return CLASS_NONE;
	best = by_deadline(s, now);
	s->borrowed = best == CLASS_NONE;
	if (!s->borrowed)
		return best;
	*wait = UINT64_MAX;
	return by_share(s, now, wait);
}

static void hfsc_charge(struct class *c, uint32_t bytes, uint64_t now)
{
	struct scheduler *s = c->scheduler;
	struct hfsc *h = &c->hfsc;

	(void)now;
	if (!s->borrowed)
		h->done += bytes;
	h->total += bytes;
	s->turned = h->turn > s->turned ? h->turn : s->turned;
	bucket_charge(&c->ceil, bytes);
	bucket_charge(&s->root, bytes);
	next_packet(c);
}

const struct sharing hfsc_sharing = {
	.peeks = true,
	.init = hfsc_init,
	.waiting = hfsc_waiting,
	.pick = hfsc_pick,
	.charge = hfsc_charge,
};
