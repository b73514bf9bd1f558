/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sessions: it counts, never exceeds its size, and forgets only what is stored. */
#include "track.h"

#include "files.h"
#include "flows.h"

#define SESSIONS 1000u
#define IDLE 1000000u

static struct track t;

static void packet(unsigned flow, uint64_t now)
{
	struct packet p;

	flow_packet(&p, flow, flow & 1);
	t.now_ns = now;
	track_packet(&t, &p);
}

/* Store all, as the store would. */
static unsigned store_all(void)
{
	unsigned n = 0;

	for (struct tracked *s; (s = track_take(&t)) != NULL; n++)
		track_stored(&t, s, s->packets - s->stored_packets, s->bytes - s->stored_bytes);
	return n;
}

static void test_counts(void)
{
	struct tracked *s;

	CHECK_EQ(track_open(&t, SESSIONS, IDLE, true), 0);
	CHECK(track_oldest(&t) == NULL);
	packet(7, 10);
	packet(7, 20);
	packet(8, 30);
	CHECK_EQ(t.counts.live, 2);
	CHECK_EQ(t.counts.packets, 3);
	CHECK_EQ(t.counts.waiting, 2);
	s = track_oldest(&t);
	CHECK(s->packets == 2 && s->bytes == 2 * FLOW_FRAME && s->since_ns == 10 && s->id != 0);
	CHECK(track_take(&t) == s);
	packet(7, 40); /* on its way to the store: once more */
	track_stored(&t, s, 2, 2 * FLOW_FRAME);
	CHECK_EQ(store_all(), 2);
	CHECK_EQ(s->stored_packets, 3);
	CHECK_EQ(t.counts.waiting, 0);
	track_close(&t);
}

/* As many as there may be, nearly all have a place, whichever they are. */
static void test_full(void)
{
	CHECK_EQ(track_open(&t, SESSIONS, IDLE, true), 0);
	for (unsigned i = 0; i < 4 * SESSIONS; i++)
		packet(i, 1);
	CHECK(t.counts.live > SESSIONS * 98 / 100 && t.counts.live <= SESSIONS);
	CHECK_EQ(t.counts.untracked + t.counts.packets, 4 * SESSIONS);
	CHECK_EQ(t.counts.waiting, t.counts.live);
	track_close(&t);
}

static void test_idle(void)
{
	CHECK_EQ(track_open(&t, SESSIONS, IDLE, true), 0);
	packet(1, 0);
	packet(2, 0);
	t.now_ns = 2 * IDLE;
	track_sweep(&t, t.places);
	CHECK_EQ(t.counts.live, 2); /* the store has nothing of them */
	CHECK_EQ(store_all(), 2);
	packet(2, 2 * IDLE);
	CHECK_EQ(store_all(), 1);
	track_sweep(&t, t.places);
	CHECK_EQ(t.counts.live, 1);
	CHECK_EQ(t.counts.expired, 1);
	packet(1, 2 * IDLE);
	CHECK_EQ(t.counts.live, 2);
	CHECK_EQ(track_oldest(&t)->packets, 1); /* another session */
	track_close(&t);
}

static void test_without_store(void)
{
	CHECK_EQ(track_open(&t, 1, IDLE, false), 0);
	packet(1, 0);
	packet(2, 0);
	CHECK_EQ(t.counts.live, 1);
	CHECK_EQ(t.counts.untracked, 1);
	CHECK(track_oldest(&t) == NULL);
	t.now_ns = 2 * IDLE;
	track_sweep(&t, t.places);
	CHECK_EQ(t.counts.live, 0);
	track_close(&t);
}

int main(void)
{
	test_counts();
	test_full();
	test_idle();
	test_without_store();
	return 0;
}
