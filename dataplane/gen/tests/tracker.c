/* SPDX-License-Identifier: Apache-2.0 */
/* Loss, duplication, order and variation of delay: known answers. */
#include "tracker.h"

#include "support.h"

static struct tracker *t;
static uint64_t now_ns;

static void begin(void)
{
	free(t);
	t = tracker_new(0);
	CHECK(t != NULL);
	now_ns = 1000000000;
}

/* A packet that came with this delay, 1 us after the one before. */
static bool come(struct packet p, uint64_t delay)
{
	uint8_t datagram[PACKET_HEADER] = {0};
	struct packet read;

	now_ns += 1000;
	p.length = p.length ? p.length : PACKET_HEADER;
	p.stream = p.stream ? p.stream : 5;
	p.type = p.type ? p.type : PACKET_DATA;
	p.sent = now_ns - delay;
	p.intended = p.sent - 7;
	packet_write(datagram, &p);
	return tracker_take(t, datagram, p.length, now_ns, &read);
}

static void sequence(uint64_t n)
{
	CHECK(come((struct packet){.sequence = n}, 100));
}

static void order(void)
{
	static const uint64_t numbers[] = {0, 1, 2, 4, 3, 5, 5, 9, 6, 8, 2};

	begin();
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sequence(numbers[i]);
	CHECK_EQ(t->counts.received, 9);
	CHECK_EQ(t->counts.duplicates, 2);	/* 5 and 2 */
	CHECK_EQ(t->counts.reordered, 3);	/* 3, 6 and 8 */
	CHECK_EQ(t->reordered_distance_max, 4); /* 6, if 10 was expected */
	CHECK_EQ(tracker_expected(t), 10);	/* 7 is missing */
	CHECK(come((struct packet){.type = PACKET_END, .sequence = 12}, 0));
	CHECK_EQ(tracker_expected(t), 12); /* and two at the end */
	CHECK(!tracker_complete(t));
	CHECK_EQ(t->stream, 5);
}

/* Different flows may overtake each other. */
static void flows(void)
{
	begin();
	come((struct packet){.sequence = 3, .flow = 1}, 1);
	come((struct packet){.sequence = 0, .flow = 0}, 1);
	come((struct packet){.sequence = 1, .flow = 0}, 1);
	CHECK_EQ(t->counts.reordered, 0);
	come((struct packet){.sequence = 2, .flow = 1}, 1);
	CHECK_EQ(t->counts.reordered, 1);
}

static void window(void)
{
	begin();
	sequence(0);
	sequence(TRACKER_WINDOW - 1);
	sequence(0);
	CHECK_EQ(t->counts.duplicates, 1); /* just within */
	sequence(TRACKER_WINDOW);
	sequence(0);
	CHECK_EQ(t->counts.stale, 1);
	sequence(1);
	/* never seen: not a duplicate, although the bit was once used */
	CHECK_EQ(t->counts.received, 4);
	sequence(3ull * TRACKER_WINDOW + 1);
	sequence(3ull * TRACKER_WINDOW);
	CHECK_EQ(t->counts.duplicates, 1);
	CHECK_EQ(t->counts.received, 6);
	CHECK(!come((struct packet){.sequence = 1ull << 40}, 0)); /* no sender is so far ahead */
	CHECK_EQ(t->counts.foreign, 1);
}

/* RFC 3550, 6.4.1, computed by hand: D is 160, 0, 320. */
static void jitter(void)
{
	static const uint64_t delays[] = {1000, 1160, 1160, 840};
	double want[] = {0, 10, 9.375, 28.7890625};

	begin();
	for (unsigned i = 0; i < 4; i++) {
		come((struct packet){.sequence = i}, delays[i]);
		CHECK(t->jitter_ns == want[i]);
	}
	CHECK(t->jitter_max_ns == want[3]);
	CHECK(t->variation.n == 3 && t->variation.sum == 480 && t->variation.max == 320 &&
	      t->variation.min == 0);
	come((struct packet){.sequence = 9}, 840);
	CHECK(t->variation.n == 3); /* not consecutive numbers */
	CHECK(t->delay.min == 840 && t->delay.max == 1160 && t->delay.n == 5);
	CHECK(t->delay_intended.min == 847);
}

static void others(void)
{
	struct packet p;
	uint8_t noise[80] = "nothing";

	begin();
	come((struct packet){.sequence = 0, .flags = PACKET_WARMUP}, 5);
	sequence(0);
	CHECK(come((struct packet){.sequence = 0, .stream = 6}, 5));
	CHECK(!come((struct packet){.sequence = 1, .type = PACKET_REPLY}, 5));
	CHECK(!tracker_take(t, noise, sizeof(noise), now_ns, &p));
	CHECK_EQ(t->counts.warmup, 1);
	CHECK_EQ(t->counts.received, 1);
	CHECK_EQ(t->counts.other_stream, 1);
	CHECK_EQ(t->counts.foreign, 2);
	CHECK(come((struct packet){.sequence = 1}, (uint64_t)-5)); /* from the future */
	CHECK_EQ(t->counts.clock_errors, 1);
	CHECK_EQ(t->counts.received, 2);
	CHECK_EQ(t->delay.n, 1);
	CHECK(come((struct packet){.type = PACKET_END, .sequence = 2}, 0) && tracker_complete(t));
}

/* Whoever asks takes a reflector's replies, and its own packets from any other echo. */
static void echoes(void)
{
	begin();
	t->replies = true;
	CHECK(come((struct packet){.sequence = 0, .type = PACKET_REPLY, .turned = now_ns + 950},
		   100));
	CHECK(come((struct packet){.sequence = 1}, 300));
	CHECK_EQ(t->counts.received, 2);
	CHECK_EQ(t->counts.clock_errors, 0);
	CHECK_EQ(t->delay.n, 2);
	CHECK_EQ(t->delay.max, 300);
	CHECK_EQ(t->forward.n, 1);
	CHECK_EQ(t->forward.max, 50);
	CHECK_EQ(t->back.max, 50);
}

static bool come_short(struct packet p, uint64_t delay)
{
	p.length = PACKET_SHORT;
	return come(p, delay);
}

/*
 * The same known answers of short packets, whose numbers wrap on the way; the end packet says how
 * many there were.
 */
static void short_ones(void)
{
	static const uint64_t numbers[] = {0, 1, 2, 4, 3, 5, 5, 9, 6, 8, 2};

	begin();
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		CHECK(come_short((struct packet){.sequence = numbers[i]}, 100));
	CHECK(t->counts.received == 9 && t->counts.duplicates == 2 && t->counts.reordered == 3 &&
	      t->reordered_distance_max == 4);
	CHECK_EQ(t->counts.received_bytes, 9 * 60);
	CHECK(t->delay.n == 9 && t->delay.min == 100 && t->delay.max == 100 &&
	      t->delay_intended.max == 107);
	CHECK(come_short((struct packet){.sequence = 7, .flags = PACKET_WARMUP}, 5) &&
	      t->counts.warmup == 1);
	for (uint64_t at = 1ull << 30; at <= 5ull << 30; at += 1ull << 30)
		CHECK(come_short((struct packet){.sequence = at}, 100));
	CHECK_EQ(tracker_expected(t), (5ull << 30) + 1); /* more than 32 bits hold */
	CHECK_EQ(t->counts.received, 14);
	CHECK(come((struct packet){.type = PACKET_END, .sequence = (5ull << 30) + 3}, 0));
	CHECK_EQ(tracker_expected(t), (5ull << 30) + 3);
	/* a duplicate from the future */
	CHECK(come_short((struct packet){.sequence = 5ull << 30}, (uint64_t)-5));
	CHECK(come_short((struct packet){.sequence = (5ull << 30) + 1}, (uint64_t)-5));
	CHECK_EQ(t->counts.clock_errors, 1);
}

/*
 * Of a stream's number they have the low bits: the rest is known from the first whole packet, such
 * as the end.
 */
static void short_streams(void)
{
	begin();
	CHECK(come_short((struct packet){.stream = 0x12345600, .sequence = 0}, 5));
	CHECK(t->stream == 0 && t->counts.received == 1);
	CHECK(come_short((struct packet){.stream = 0x12345601, .sequence = 1}, 5));
	CHECK(come((struct packet){.stream = 0x12345601, .sequence = 1}, 5));
	CHECK_EQ(t->counts.other_stream, 2);
	CHECK(come((struct packet){.type = PACKET_END, .stream = 0x12345600, .sequence = 2}, 5));
	CHECK(t->stream == 0x12345600 && t->end_seen);
	CHECK(come((struct packet){.stream = 0x77777700, .sequence = 1}, 5));
	CHECK_EQ(t->counts.other_stream, 3);
	/* unknown */
	CHECK(come_short((struct packet){.stream = 0x77777700, .sequence = 1}, 5));
	CHECK(t->counts.received == 2 && tracker_complete(t));
}

/* A short reply does not say when it was turned. */
static void short_echoes(void)
{
	begin();
	t->replies = true;
	CHECK(come_short((struct packet){.sequence = 0, .type = PACKET_REPLY}, 100));
	CHECK(come_short((struct packet){.sequence = 1}, 300));
	CHECK(t->counts.received == 2 && t->counts.clock_errors == 0 && t->delay.max == 300 &&
	      t->forward.n == 0 && t->back.n == 0);
	begin();
	CHECK(!come_short((struct packet){.sequence = 0, .type = PACKET_REPLY}, 100));
	CHECK_EQ(t->counts.foreign, 1);
}

int main(void)
{
	short_ones();
	short_streams();
	short_echoes();
	echoes();
	order();
	flows();
	window();
	jitter();
	others();
	free(t);
	return 0;
}
