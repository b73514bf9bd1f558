/* SPDX-License-Identifier: Apache-2.0 */
/* Loss, duplication and order by sequence number; delay by the stamps. */
#include "tracker.h"

#include <stdlib.h>
#include <string.h>

#define JUMP_MAX (1ull << 32)  /* no sender is that far ahead */
#define DELAY_MAX (1ull << 42) /* ns; 73 minutes */
#define LOW 0xffu	       /* the bits of a stream's number that short packets carry */

struct tracker *tracker_new(uint32_t stream)
{
	struct tracker *t = calloc(1, sizeof(*t));

	if (t) {
		t->stream = stream;
		t->has_stream = stream != 0;
	}
	return t;
}

static uint64_t *word_of(struct tracker *t, uint64_t sequence)
{
	return &t->window[sequence / 64 % (TRACKER_WINDOW / 64)];
}

/* Mark n consecutive numbers as received, or not. */
static void mark(struct tracker *t, uint64_t sequence, uint64_t n, bool received)
{
	while (n) {
		unsigned at = sequence % 64, some = n < 64 - at ? (unsigned)n : 64 - at;
		uint64_t bits = UINT64_MAX >> (64 - some) << at, *word = word_of(t, sequence);

		*word = received ? *word | bits : *word & ~bits;
		sequence += some;
		n -= some;
	}
}

/* `next` moves up to sequence: forget the numbers that leave the window. */
static void skip(struct tracker *t, uint64_t sequence)
{
	if (sequence - t->next >= TRACKER_WINDOW)
		memset(t->window, 0, sizeof(t->window));
	else
		mark(t, t->next, sequence - t->next, false);
	t->next = sequence;
}

/* Whether this number, which is below `next`, came for the first time; counts a duplicate. */
static bool is_late(struct tracker *t, uint64_t sequence)
{
	if (t->next - sequence > TRACKER_WINDOW) {
		t->counts.stale++;
		return false;
	}
	if (*word_of(t, sequence) >> sequence % 64 & 1) {
		t->counts.duplicates++;
		return false;
	}
	return true;
}

/*
 * RFC 4737, section 3: a packet is reordered if its number is less than the next one expected.
 */
static void look_at_order(struct tracker *t, const struct packet *first, unsigned n)
{
	uint64_t *next = &t->flow_next[first->flow], end = first->sequence + n;

	if (first->sequence < *next) {
		t->counts.reordered += (end < *next ? end : *next) - first->sequence;
		if (*next - first->sequence > t->reordered_distance_max)
			t->reordered_distance_max = *next - first->sequence;
	}
	if (end > *next)
		*next = end;
}

/*
 * Packets without variation leave 15/16 of the jitter each. They are counted, and what they leave
 * is computed when it is needed: a chain of roundings would cost a run more than all else.
 */
static double settled(double jitter, uint64_t still)
{
	double left = 15.0 / 16;

	for (; still && left > 0; still /= 2, left *= left)
		jitter *= still % 2 ? left : 1;
	return still ? 0 : jitter;
}

double tracker_jitter(const struct tracker *t)
{
	return settled(t->jitter_ns, t->still);
}

/* The jitter after one more packet (RFC 3550, 6.4.1). */
static void vary(struct tracker *t, uint64_t d)
{
	if (d == 0) {
		t->still++;
		return;
	}
	t->jitter_ns = tracker_jitter(t);
	t->still = 0;
	t->jitter_ns += ((double)d - t->jitter_ns) / 16;
	if (t->jitter_ns > t->jitter_max_ns)
		t->jitter_max_ns = t->jitter_ns;
}

/*
 * Consecutive in arrival (RFC 3550, 6.4.1), and among these those with consecutive numbers (RFC
 * 3393). Within a run the delay does not change.
 */
static void look_at_variation(struct tracker *t, uint64_t sequence, unsigned n, uint64_t delay)
{
	if (t->has_last) {
		uint64_t d = delay > t->last_delay ? delay - t->last_delay : t->last_delay - delay;

		vary(t, d);
		if (sequence == t->last_sequence + 1)
			histogram_add(&t->variation, d, 1);
	}
	t->still += n - 1;
	if (n > 1)
		histogram_add(&t->variation, 0, n - 1);
	t->has_last = true;
	t->last_sequence = sequence + n - 1;
	t->last_delay = delay;
}

static bool plausible(uint64_t stamp, uint64_t now)
{
	return stamp <= now && now - stamp < DELAY_MAX;
}

static bool is_reply(const struct packet *p)
{
	return p->type == PACKET_REPLY || p->type == PACKET_END_REPLY;
}

static bool is_data(const struct packet *p)
{
	return p->type == PACKET_DATA || p->type == PACKET_REPLY;
}

static void measure(struct tracker *t, const struct packet *p, unsigned n, uint64_t now)
{
	/* short packets have no such stamp */
	bool turned = t->replies && is_reply(p) && !packet_is_short(p);

	if (!plausible(p->sent, now) || !plausible(p->intended, now) ||
	    (turned && (!plausible(p->turned, now) || p->turned < p->sent))) {
		t->counts.clock_errors += n;
		return;
	}
	histogram_add(&t->delay, now - p->sent, n);
	histogram_add(&t->delay_intended, now - p->intended, n);
	if (t->intervals)
		histogram_add(&t->delay_interval, now - p->sent, n);
	if (turned) {
		histogram_add(&t->forward, p->turned - p->sent, n);
		histogram_add(&t->back, now - p->turned, n);
	}
	look_at_variation(t, p->sequence, n, now - p->sent);
}

/* A run that was not received before. */
static void accept(struct tracker *t, const struct packet *first, unsigned n,
		   const struct io_buf *buf, uint64_t now)
{
	mark(t, first->sequence, n, true);
	if (t->counts.received == 0)
		t->first_ns = now;
	t->last_ns = now;
	t->counts.received += n;
	t->counts.received_bytes += (uint64_t)n * (first->length + buf->headers);
	look_at_order(t, first, n);
	measure(t, first, n, now);
	if (windows_exist(&t->windows))
		windows_judge(&t->windows, buf, first, now);
}

/* The first is in this buffer. */
static void take_data(struct tracker *t, struct packet p, unsigned n, const struct io_buf *buf,
		      uint64_t now)
{
	if (p.flags & PACKET_WARMUP) {
		t->counts.warmup += n;
		return;
	}
	for (; n && p.sequence < t->next; n--, p.sequence++)
		if (is_late(t, p.sequence))
			accept(t, &p, 1, buf, now);
	if (n == 0)
		return;
	skip(t, p.sequence);
	t->next += n;
	accept(t, &p, n, buf, now);
}

/*
 * Whether it belongs to the followed stream, which may begin with it. Short packets carry only the
 * low bits of its number.
 */
static bool is_followed(struct tracker *t, const struct packet *p)
{
	if (!t->has_stream) {
		t->has_stream = true;
		t->low_stream = packet_is_short(p);
		t->stream = p->stream;
	} else if (packet_is_short(p)) {
		return p->stream == (t->stream & LOW);
	} else if (t->low_stream && (p->stream & LOW) == t->stream) {
		t->low_stream = false;
		t->stream = p->stream;
	}
	return p->stream == t->stream;
}

/* Count packets of a sender's second stream. They may come before any of the first. */
static void take_bulk(struct tracker *t, const struct packet *p, unsigned n,
		      const struct io_buf *buf, uint64_t now)
{
	struct packet first = *p;

	first.stream--; /* its number is the next: bulk.h */
	if (!is_followed(t, &first)) {
		t->counts.other_stream += n;
		return;
	}
	t->has_bulk = true;
	if (p->flags & PACKET_WARMUP)
		return;
	if (t->bulk_received == 0)
		t->bulk_first_ns = now;
	t->bulk_last_ns = now;
	t->bulk_received += n;
	t->bulk_bytes += (uint64_t)n * (p->length + buf->headers);
}

/* Complete the first packet of a run, and say whether it is of the wanted kind. */
static bool is_wanted(const struct tracker *t, struct packet *p, uint64_t now)
{
	/*
	 * A pinging sender also accepts its own packets: the function that returns them need not
	 * know draygen.
	 */
	if (!t->replies && is_reply(p))
		return false;
	packet_complete(p, now, t->next);
	return p->sequence <= t->next || p->sequence - t->next <= JUMP_MAX;
}

unsigned tracker_take(struct tracker *t, struct io_buf *bufs, unsigned n, uint64_t now,
		      struct packet *p, bool *wanted)
{
	enum packet_verdict verdict;
	/* the messages of a run may have different windows */
	unsigned run = packet_read(bufs, windows_exist(&t->windows) ? 1 : n, t->check, p, &verdict);

	*wanted = verdict == PACKET_GOOD && (p->flags & PACKET_BULK || is_wanted(t, p, now));
	if (verdict == PACKET_CORRUPT) {
		t->counts.corrupt++;
	} else if (!*wanted) {
		t->counts.foreign += run;
	} else if (p->flags & PACKET_BULK) {
		take_bulk(t, p, run, bufs, now);
	} else if (!is_followed(t, p)) {
		t->counts.other_stream += run;
	} else if (is_data(p)) {
		take_data(t, *p, run, bufs, now);
	} else {
		t->end_seen = true;
		t->end_count = p->sequence;
	}
	return run;
}

void tracker_take_all(struct tracker *t, struct io_buf *bufs, unsigned n, uint64_t now)
{
	struct packet first;
	bool wanted;

	for (unsigned i = 0; i < n;)
		i += tracker_take(t, bufs + i, n - i, now, &first, &wanted);
}

uint64_t tracker_expected(const struct tracker *t)
{
	return t->end_seen && t->end_count > t->next ? t->end_count : t->next;
}

bool tracker_complete(const struct tracker *t)
{
	return t->end_seen && t->counts.received >= t->end_count;
}
