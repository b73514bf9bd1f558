/* SPDX-License-Identifier: Apache-2.0 */
/* Loss, duplication and order by sequence number; delay by the stamps. */
#include "tracker.h"

#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define JUMP_MAX (1ull << 32)  /* no sender is that far ahead */
#define DELAY_MAX (1ull << 42) /* ns; 73 minutes */
#define LOW 0xffu	       /* the bits of a stream's number that short packets carry */

struct tracker *tracker_new(uint32_t stream)
{
	struct tracker *t = calloc(1, sizeof(*t));

	if (t) {
		t->stream = stream;
		t->has_stream = stream != 0;
		t->headers = FRAME_HEADERS;
	}
	return t;
}

static uint64_t bit_of(uint64_t sequence)
{
	return 1ull << (sequence % 64);
}

static uint64_t *word_of(struct tracker *t, uint64_t sequence)
{
	return &t->window[sequence / 64 % (TRACKER_WINDOW / 64)];
}

/* Forget the numbers that leave the window when `next` moves up to sequence + 1. */
static void advance(struct tracker *t, uint64_t sequence)
{
	if (sequence - t->next >= TRACKER_WINDOW) {
		memset(t->window, 0, sizeof(t->window));
	} else {
		for (uint64_t s = t->next; s <= sequence; s++)
			*word_of(t, s) &= ~bit_of(s);
	}
	t->next = sequence + 1;
}

/* Whether this sequence number came for the first time; counts a duplicate. */
static bool is_new(struct tracker *t, uint64_t sequence)
{
	if (sequence >= t->next) {
		advance(t, sequence);
	} else if (t->next - sequence > TRACKER_WINDOW) {
		t->counts.stale++;
		return false;
	} else if (*word_of(t, sequence) & bit_of(sequence)) {
		t->counts.duplicates++;
		return false;
	}
	*word_of(t, sequence) |= bit_of(sequence);
	return true;
}

/*
 * RFC 4737, section 3: a packet is reordered if its number is less than the next one expected.
 */
static void look_at_order(struct tracker *t, const struct packet *p)
{
	uint64_t *next = &t->flow_next[p->flow];

	if (p->sequence >= *next) {
		*next = p->sequence + 1;
		return;
	}
	t->counts.reordered++;
	if (*next - p->sequence > t->reordered_distance_max)
		t->reordered_distance_max = *next - p->sequence;
}

/*
 * Consecutive in arrival (RFC 3550, 6.4.1), and among these those with consecutive numbers (RFC
 * 3393).
 */
static void look_at_variation(struct tracker *t, uint64_t sequence, uint64_t delay)
{
	if (t->has_last) {
		uint64_t d = delay > t->last_delay ? delay - t->last_delay : t->last_delay - delay;

		t->jitter_ns += ((double)d - t->jitter_ns) / 16;
		if (t->jitter_ns > t->jitter_max_ns)
			t->jitter_max_ns = t->jitter_ns;
		if (sequence == t->last_sequence + 1)
			histogram_add(&t->variation, d);
	}
	t->has_last = true;
	t->last_sequence = sequence;
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

static void measure(struct tracker *t, const struct packet *p, uint64_t now)
{
	/* short packets have no such stamp */
	bool turned = t->replies && is_reply(p) && !packet_is_short(p);

	if (!plausible(p->sent, now) || !plausible(p->intended, now) ||
	    (turned && (!plausible(p->turned, now) || p->turned < p->sent))) {
		t->counts.clock_errors++;
		return;
	}
	histogram_add(&t->delay, now - p->sent);
	histogram_add(&t->delay_intended, now - p->intended);
	if (t->intervals)
		histogram_add(&t->delay_interval, now - p->sent);
	if (turned) {
		histogram_add(&t->forward, p->turned - p->sent);
		histogram_add(&t->back, now - p->turned);
	}
	look_at_variation(t, p->sequence, now - p->sent);
}

static void take_data(struct tracker *t, const struct packet *p, uint64_t now)
{
	if (p->flags & PACKET_WARMUP) {
		t->counts.warmup++;
		return;
	}
	if (!is_new(t, p->sequence))
		return;
	if (t->counts.received == 0)
		t->first_ns = now;
	t->last_ns = now;
	t->counts.received++;
	t->counts.received_bytes += p->length + t->headers;
	look_at_order(t, p);
	measure(t, p, now);
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

bool tracker_take(struct tracker *t, const uint8_t *datagram, uint32_t length, uint64_t now,
		  struct packet *p)
{
	enum packet_verdict verdict = packet_read(datagram, length, t->check, p);
	/*
	 * A pinging sender also accepts its own packets: the function that returns them need not
	 * know draygen.
	 */
	bool wanted = verdict == PACKET_GOOD && (t->replies || !is_reply(p));

	if (verdict == PACKET_CORRUPT) {
		t->counts.corrupt++;
		return false;
	}
	if (wanted)
		packet_complete(p, now, t->next);
	if (!wanted || (p->sequence > t->next && p->sequence - t->next > JUMP_MAX)) {
		t->counts.foreign++;
		return false;
	}
	if (!is_followed(t, p)) {
		t->counts.other_stream++;
	} else if (is_data(p)) {
		take_data(t, p, now);
	} else {
		t->end_seen = true;
		t->end_count = p->sequence;
	}
	return true;
}

uint64_t tracker_expected(const struct tracker *t)
{
	return t->end_seen && t->end_count > t->next ? t->end_count : t->next;
}

bool tracker_complete(const struct tracker *t)
{
	return t->end_seen && t->counts.received >= t->end_count;
}
