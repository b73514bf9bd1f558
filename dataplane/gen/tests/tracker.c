/* SPDX-License-Identifier: Apache-2.0 */
/* Loss, duplication, order and variation of delay: known answers. */
#include "tracker.h"

#include <math.h>

#include "frame.h"
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

/* The datagram that a tracker takes next. */
static uint8_t datagram[PACKET_HEADER];

static bool take(uint32_t length)
{
	struct io_buf buf = {.data = datagram, .length = length, .headers = FRAME_HEADERS};
	struct packet first;
	bool wanted;

	CHECK_EQ(tracker_take(t, &buf, 1, now_ns, &first, &wanted), 1);
	return wanted;
}

/* A packet that came with this delay, 1 us after the one before. */
static bool come(struct packet p, uint64_t delay)
{
	struct io_buf buf = {.data = datagram, .length = p.length ? p.length : PACKET_HEADER};

	now_ns += 1000;
	p.stream = p.stream ? p.stream : 5;
	p.type = p.type ? p.type : PACKET_DATA;
	p.sent = now_ns - delay;
	p.intended = p.sent - 7;
	packet_write(&p, &buf, 1);
	return take(buf.length);
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

/* Numbers that a gap brings into the window were not seen, whatever had their bits before. */
static void forgotten(void)
{
	begin();
	for (unsigned i = 0; i < 150; i++)
		sequence(i);
	sequence(TRACKER_WINDOW - 1);
	sequence(TRACKER_WINDOW + 149);
	for (unsigned i = 0; i < 149; i++)
		sequence(TRACKER_WINDOW + i);
	CHECK_EQ(t->counts.duplicates, 0);
	sequence(TRACKER_WINDOW + 149);
	CHECK_EQ(t->counts.duplicates, 1);
	CHECK_EQ(t->counts.received, 301);
}

/* RFC 3550, 6.4.1, computed by hand: D is 160, 0, 320. */
static void jitter(void)
{
	static const uint64_t delays[] = {1000, 1160, 1160, 840};
	double want[] = {0, 10, 9.375, 28.7890625};

	begin();
	for (unsigned i = 0; i < 4; i++) {
		come((struct packet){.sequence = i}, delays[i]);
		CHECK(tracker_jitter(t) == want[i]);
	}
	CHECK(t->jitter_max_ns == want[3]);
	CHECK(t->variation.n == 3 && t->variation.sum == 480 && t->variation.max == 320 &&
	      t->variation.min == 0);
	come((struct packet){.sequence = 9}, 840);
	CHECK(t->variation.n == 3); /* not consecutive numbers */
	CHECK(t->delay.min == 840 && t->delay.max == 1160 && t->delay.n == 5);
	CHECK(t->delay_intended.min == 847);
}

/* Without variation 15/16 of the jitter are left each time, however many packets that are. */
static void jitter_decays(void)
{
	double want = 10;

	begin();
	come((struct packet){.sequence = 0}, 1000);
	come((struct packet){.sequence = 1}, 1160);
	for (unsigned i = 2; i < 300; i++) {
		come((struct packet){.sequence = i}, 1160);
		want -= want / 16;
		CHECK(fabs(tracker_jitter(t) / want - 1) < 1e-12);
	}
	come((struct packet){.sequence = 300}, 1000);
	CHECK(fabs(tracker_jitter(t) / (want + (160 - want) / 16) - 1) < 1e-12);
	t->still = UINT64_MAX;
	CHECK(tracker_jitter(t) == 0);
}

static void others(void)
{
	begin();
	come((struct packet){.sequence = 0, .flags = PACKET_WARMUP}, 5);
	sequence(0);
	CHECK(come((struct packet){.sequence = 0, .stream = 6}, 5));
	CHECK(!come((struct packet){.sequence = 1, .type = PACKET_REPLY}, 5));
	memset(datagram, 'n', sizeof(datagram));
	CHECK(!take(sizeof(datagram)));
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

static uint64_t random_number(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Of a run: whole or short, measured or warm-up, new, repeated, late, or after a gap. */
static struct packet some_packet(uint64_t next)
{
	uint64_t r = random_number();
	struct packet p = {.type = r & 1 ? PACKET_DATA : PACKET_REPLY,
			   .flags = (r >> 1 & 15) == 0 ? PACKET_WARMUP : 0,
			   .flow = r >> 5 & 1,
			   .stream = (r >> 6 & 15) == 0 ? 6 : 5,
			   .sequence = next,
			   .sent = now_ns - (r >> 10 & 1023)};

	if ((r >> 20 & 3) == 0)
		p.sequence = next > 40 ? next - (r >> 24 & 31) : 0;
	if ((r >> 20 & 63) == 1)
		p.sequence += r >> 30 & 0x1fffff; /* over the window, at times */
	if ((r >> 52 & 31) == 0)
		p.sent = now_ns + 5;
	p.intended = p.sent - (r >> 40 & 255);
	p.turned = p.sent + (r >> 48 & 15);
	return p;
}

/* Write runs into these buffers, with some damage. */
static void some_datagrams(struct io_buf *bufs, unsigned n)
{
	uint32_t length = random_number() & 1 ? PACKET_SHORT : PACKET_HEADER;

	for (unsigned i = 0, run; i < n; i += run) {
		struct packet p = some_packet(t->next);

		run = 1 + (unsigned)(random_number() % (n - i));
		for (unsigned k = i; k < i + run; k++)
			bufs[k].length = length;
		packet_write(&p, bufs + i, run);
		if ((random_number() & 7) == 0)
			bufs[i + random_number() % run].data[random_number() % length] ^= 8;
	}
}

/* A burst at once leaves the same in the tracker as its datagrams one after the other. */
static void bursts(void)
{
	static uint8_t memory[IO_BATCH][PACKET_HEADER];
	struct tracker *alone = tracker_new(0);

	begin();
	CHECK(alone != NULL);
	t->replies = alone->replies = true;
	t->intervals = alone->intervals = true;
	for (unsigned round = 0; round < 2000; round++, now_ns += 1000) {
		unsigned n = 1 + (unsigned)(random_number() % IO_BATCH);
		struct io_buf bufs[IO_BATCH];

		for (unsigned i = 0; i < n; i++)
			bufs[i] = (struct io_buf){.data = memory[i], .headers = FRAME_HEADERS};
		some_datagrams(bufs, n);
		for (unsigned i = 0; i < n; i++)
			tracker_take_all(alone, &bufs[i], 1, now_ns);
		tracker_take_all(t, bufs, n, now_ns);
		CHECK(memcmp(t, alone, sizeof(*t)) == 0);
	}
	CHECK(t->counts.received && t->counts.duplicates && t->counts.reordered &&
	      t->counts.stale && t->counts.warmup && t->counts.foreign && t->counts.corrupt &&
	      t->counts.other_stream && t->counts.clock_errors);
	free(alone);
}

/* The stream with the number before is followed, whether the bulk comes first or not. */
static void bulk(void)
{
	begin();
	CHECK(come((struct packet){.stream = 8, .flags = PACKET_BULK | PACKET_WARMUP}, 1));
	CHECK(t->has_bulk);
	CHECK_EQ(t->bulk_received, 0);
	CHECK_EQ(t->stream, 7);
	CHECK(come((struct packet){.stream = 8, .flags = PACKET_BULK, .length = 100}, 1));
	CHECK(come((struct packet){.stream = 7}, 1));
	CHECK(come((struct packet){.stream = 8, .flags = PACKET_BULK, .sequence = 9}, 5000));
	CHECK(come((struct packet){.stream = 8, .sequence = 9}, 1)); /* another's */
	CHECK(come((struct packet){.stream = 7, .flags = PACKET_BULK}, 1));
	CHECK_EQ(t->bulk_received, 2);
	CHECK_EQ(t->bulk_bytes, 100 + FRAME_HEADERS + PACKET_HEADER + FRAME_HEADERS);
	CHECK_EQ(t->bulk_last_ns - t->bulk_first_ns, 2000);
	CHECK_EQ(t->counts.received, 1);
	CHECK_EQ(t->counts.other_stream, 2);
	CHECK_EQ(t->delay.n, 1);
}

int main(void)
{
	bulk();
	short_ones();
	short_streams();
	short_echoes();
	echoes();
	order();
	flows();
	window();
	forgotten();
	jitter();
	jitter_decays();
	others();
	bursts();
	free(t);
	return 0;
}
