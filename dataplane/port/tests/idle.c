/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long an idle receiver polls, against a clock that the test sets: 1 tick is 1 ns. A receiver
 * is simulated, which looks, polls, sleeps and takes some time to wake up.
 */
#include "idle.h"

#include "test.h"

#define US 1000ull
#define LONGEST (50 * US)
#define MANY 20000u

struct receiver {
	struct idle idle;
	uint64_t now, wake_up; /* ns */
	uint64_t polled;       /* ns, so far */
	unsigned sleeps, taken;
};

/* Gaps before packets, in ns. */
struct pattern {
	const char *name;
	uint64_t (*gap)(unsigned i);
};

static uint64_t dice = 88172645463325252ull;

static uint64_t roll(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	return dice ^= dice << 17;
}

/* About exponential: how many of these tosses fail in a row, and a part of one more. */
static uint64_t exponential(uint64_t mean)
{
	uint64_t sum = 0;

	while (roll() % 16)
		sum += mean / 16;
	return sum + roll() % (mean / 16);
}

static uint64_t every_10us(unsigned i)
{
	(void)i;
	return 10 * US;
}

static uint64_t every_45us(unsigned i)
{
	(void)i;
	return 45 * US;
}

static uint64_t every_100us(unsigned i)
{
	(void)i;
	return 100 * US;
}

static uint64_t every_ms(unsigned i)
{
	(void)i;
	return 1000 * US;
}

static uint64_t random_10us(unsigned i)
{
	(void)i;
	return exponential(10 * US);
}

static uint64_t random_100us(unsigned i)
{
	(void)i;
	return exponential(100 * US);
}

static uint64_t random_ms(unsigned i)
{
	(void)i;
	return exponential(1000 * US);
}

/* A slot of four messages. */
static uint64_t slots(unsigned i)
{
	return i % 4 ? 5 * US : 485 * US;
}

static uint64_t bursts(unsigned i)
{
	return i % 32 ? 0 : 1000 * US;
}

/* As many gaps of either kind as it takes to change the receiver's mind. */
static uint64_t both(unsigned i)
{
	return i / 16 % 2 ? 20 * US : 100 * US;
}

static const struct pattern patterns[] = {
	{"every 10 us", every_10us},	{"every 45 us", every_45us},
	{"every 100 us", every_100us},	{"every ms", every_ms},
	{"random, 10 us", random_10us}, {"random, 100 us", random_100us},
	{"random, 1 ms", random_ms},	{"slots of 4", slots},
	{"bursts of 32", bursts},	{"16 fast, 16 slow", both},
};

/* Poll and sleep until the packet that comes at `due` is there. */
static void await(struct receiver *r, uint64_t due)
{
	while (r->now < due && idle_polls(&r->idle, r->now)) {
		uint64_t end = r->idle.began + r->idle.poll, until = due < end ? due : end;

		CHECK(r->idle.poll <= r->idle.longest);
		r->polled += until - r->now;
		r->now = until;
	}
	if (r->now >= due)
		return;
	r->sleeps++;
	r->now = due + r->wake_up;
}

/* n packets of a pattern; all that came meanwhile are taken at once. */
static void receive(struct receiver *r, uint64_t (*gap)(unsigned), unsigned n)
{
	uint64_t due = r->now + gap(0);

	for (unsigned i = 0; i < n;) {
		unsigned got = 0;

		await(r, due);
		for (; i < n && due <= r->now; got++)
			due += gap(++i);
		if (r->idle.began)
			idle_end(&r->idle, r->now, got);
		r->taken += got;
		r->now += 100;
	}
}

static struct receiver receiver(uint64_t wake_up, bool learns)
{
	struct receiver r = {.now = US, .wake_up = wake_up};

	idle_init(&r.idle, LONGEST, learns);
	return r;
}

/* It polls no longer than a receiver that does not learn, and sleeps when that sleeps. */
static void compare(const struct pattern *p, uint64_t wake_up)
{
	struct receiver fixed = receiver(wake_up, false), learns = receiver(wake_up, true);

	dice = 1;
	receive(&fixed, p->gap, MANY);
	dice = 1;
	receive(&learns, p->gap, MANY);
	printf("%-18s wake-up %3llu us: polls %6.2f us a packet of %6.2f, sleeps %5u of %5u\n",
	       p->name, (unsigned long long)(wake_up / US), (double)learns.polled / 1000 / MANY,
	       (double)fixed.polled / 1000 / MANY, learns.sleeps, fixed.sleeps);
	CHECK(learns.polled <= fixed.polled + LONGEST);
	if (fixed.sleeps == 0)
		CHECK_EQ(learns.sleeps, 0);
}

/* Packets that come late: next to no polling, after a few of them. */
static void late(uint64_t (*gap)(unsigned), uint64_t wake_up)
{
	struct receiver r = receiver(wake_up, true);

	receive(&r, gap, 8);
	r.polled = r.sleeps = 0;
	receive(&r, gap, MANY);
	CHECK(r.polled < MANY * 3 * US);
	CHECK(r.sleeps > MANY - MANY / 8);
}

/* It polls again after a few packets of a faster stream, and sleeps after a few of a slower. */
static void change(uint64_t wake_up)
{
	struct receiver r = receiver(wake_up, true);

	for (unsigned i = 0; i < 20; i++) {
		unsigned before;

		receive(&r, every_ms, 200);
		before = r.sleeps;
		receive(&r, every_10us, 1000);
		CHECK(r.sleeps - before <= 12);
		r.polled = 0;
		receive(&r, every_ms, 200);
		CHECK(r.polled < 20 * LONGEST);
	}
}

/* Packets that answer what this end sent, so each comes so long after the last was taken. */
static void receive_answers(struct receiver *r, uint64_t gap, unsigned n)
{
	for (; n; n--) {
		await(r, r->now + gap);
		idle_end(&r->idle, r->now, 1);
		r->now += 100;
	}
}

/*
 * The end of a period that was slept through does not show that the gap was shorter than the
 * longest polling. It learns that all the same.
 */
static void hidden_change(void)
{
	struct receiver r = receiver(20 * US, true);

	receive_answers(&r, 100 * US, 1000);
	r.sleeps = 0;
	receive_answers(&r, 45 * US, 1000);
	CHECK(r.sleeps < 100);
}

/* A few late packets do not make it miss the others. */
static void few_late(void)
{
	struct receiver r = receiver(20 * US, true);

	for (unsigned i = 0; i < 20; i++) {
		receive_answers(&r, 1000 * US, 10);
		r.sleeps = 0;
		receive_answers(&r, 45 * US, 1000);
		CHECK(r.sleeps < 20);
	}
}

/* What a peer would do that knows all: come just too late for the polling, or just after. */
static void hostile(void)
{
	struct receiver r = receiver(5 * US, true);

	for (unsigned i = 0; i < MANY; i++) {
		uint64_t before = r.polled, gap;

		CHECK(idle_polls(&r.idle, r.now) == (r.idle.poll > 0));
		gap = r.idle.poll == LONGEST ? LONGEST + 1 : r.idle.poll + 1;
		await(&r, r.now + gap);
		CHECK(r.polled - before <= LONGEST);
		idle_end(&r.idle, r.now, i % 3 ? 1 : UINT32_MAX);
		r.now += 100;
	}
	r.sleeps = 0;
	receive(&r, every_10us, 1000);
	CHECK(r.sleeps < 50);
}

/* A clock that jumps ends the polling, and is forgotten soon. */
static void jumps(void)
{
	struct receiver r = receiver(5 * US, true);

	receive(&r, every_10us, 100);
	CHECK(idle_polls(&r.idle, r.now));
	CHECK(!idle_polls(&r.idle, r.now - 1));
	CHECK(!idle_polls(&r.idle, 1));
	CHECK(!idle_polls(&r.idle, UINT64_MAX));
	idle_end(&r.idle, 1, 1);
	CHECK(idle_polls(&r.idle, UINT64_MAX - 5));
	CHECK(idle_polls(&r.idle, UINT64_MAX));
	CHECK(idle_polls(&r.idle, 5));
	idle_end(&r.idle, 10, 1);
	r.sleeps = 0;
	receive(&r, every_10us, 1000);
	CHECK_EQ(r.sleeps, 0);
}

/* Packets that dray_wait reported, and the application took much later: that time was not idle. */
static void taken_later(void)
{
	struct receiver r = receiver(5 * US, true);

	for (unsigned i = 0; i < 1000; i++) {
		CHECK(idle_polls(&r.idle, r.now));
		r.now += 10 * US;
		idle_see(&r.idle, r.now);
		r.now += 1000 * US;
		idle_see(&r.idle, r.now);
		idle_end(&r.idle, r.now, 1);
	}
}

int main(void)
{
	static const uint64_t wake_ups[] = {2 * US, 20 * US, 60 * US, 150 * US};

	for (unsigned w = 0; w < sizeof(wake_ups) / sizeof(wake_ups[0]); w++) {
		for (unsigned i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
			compare(&patterns[i], wake_ups[w]);
		late(every_ms, wake_ups[w]);
		change(wake_ups[w]);
	}
	late(every_100us, 5 * US);
	late(every_100us, 40 * US);
	hidden_change();
	few_late();
	hostile();
	jumps();
	taken_later();
	return 0;
}
