/* SPDX-License-Identifier: Apache-2.0 */
/* How classes share the port's rate. */
#include "rig.h"

#define RATE 100000000ull /* bit/s */
#define LONG 1500
#define BURST 3000

static struct wire_classes plan_of(enum class_scheduler scheduler, unsigned classes)
{
	struct wire_classes plan = {
		.scheduler = scheduler, .classes = classes, .rate = RATE, .burst = BURST};

	for (unsigned i = 0; i < classes; i++) {
		plan.class[i].limit = 100;
		if (i + 1 < classes)
			plan.class[i].dscp = 1ull << i;
	}
	return plan;
}

static void grant(struct wire_class *c, uint64_t rate, uint64_t ceil)
{
	c->rate = rate;
	c->ceil = ceil;
	c->peak = BURST;
}

/* A stream for each class, that offers so much. */
static struct stream stream_of(unsigned class, uint64_t rate)
{
	return (struct stream){.length = LONG, .dscp = (uint8_t) class, .rate = rate, .port = 7};
}

/* The first class sends all it has, the last what is left. */
static void strict(void)
{
	struct stream s[] = {stream_of(0, RATE * 3 / 10), stream_of(1, RATE * 5 / 10),
			     stream_of(2, RATE)};
	struct wire_classes plan = plan_of(SCHEDULER_STRICT, 3);
	struct rig rig;

	rig_init(&rig, &plan, s, 3);
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR(rig_rate(&s[0], SECOND), RATE * 3 / 10, 0.01);
	CHECK_NEAR(rig_rate(&s[1], SECOND), RATE * 5 / 10, 0.01);
	CHECK_NEAR(rig_rate(&s[2], SECOND), RATE * 2 / 10, 0.01);
	CHECK_EQ(s[0].dropped + s[1].dropped, 0);
	/* at most the packet that is being sent, and one of its own */
	CHECK(s[0].wait_max <= 3 * LONG * 8 * SECOND / RATE);
	rig_free(&rig);
}

/* Each class gets its rate; what is left is borrowed in proportion to the rates. */
static void htb_borrows(void)
{
	struct stream s[] = {stream_of(0, RATE), stream_of(1, RATE), stream_of(2, RATE / 10)};
	struct wire_classes plan = plan_of(SCHEDULER_HTB, 3);
	struct rig rig;

	grant(&plan.class[0], RATE / 10, RATE);
	grant(&plan.class[1], RATE * 4 / 10, RATE);
	grant(&plan.class[2], RATE * 2 / 10, RATE);
	rig_init(&rig, &plan, s, 3);
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR(rig_rate(&s[2], SECOND), RATE / 10, 0.01);
	/* 40 % are left: 8 and 32 */
	CHECK_NEAR(rig_rate(&s[0], SECOND), RATE * 18 / 100, 0.03);
	CHECK_NEAR(rig_rate(&s[1], SECOND), RATE * 72 / 100, 0.03);
	rig_free(&rig);
}

/* A ceil holds although the root has more; priority decides who borrows. */
static void htb_ceil_and_priority(void)
{
	struct stream s[] = {stream_of(0, RATE), stream_of(1, RATE), stream_of(2, RATE)};
	struct wire_classes plan = plan_of(SCHEDULER_HTB, 3);
	struct rig rig;

	grant(&plan.class[0], RATE / 10, RATE * 2 / 10);
	grant(&plan.class[1], RATE / 10, RATE);
	grant(&plan.class[2], RATE / 10, RATE);
	plan.class[2].priority = 1;
	rig_init(&rig, &plan, s, 3);
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR(rig_rate(&s[0], SECOND), RATE * 2 / 10, 0.02);
	CHECK_NEAR(rig_rate(&s[1], SECOND), RATE * 7 / 10, 0.02);
	CHECK_NEAR(rig_rate(&s[2], SECOND), RATE * 1 / 10, 0.02);
	rig_free(&rig);
}

/* What a class has borrowed while it was alone does not count against its grant. */
static void htb_keeps_grants(void)
{
	struct stream s[] = {stream_of(0, 0), stream_of(1, RATE)};
	struct wire_classes plan = plan_of(SCHEDULER_HTB, 2);
	struct rig rig;
	uint64_t before;

	grant(&plan.class[0], RATE * 2 / 10, RATE);
	grant(&plan.class[1], RATE * 2 / 10, RATE);
	plan.class[1].priority = 1;
	rig_init(&rig, &plan, s, 2);
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR(rig_rate(&s[1], SECOND), RATE, 0.01);
	before = s[1].bytes;
	s[0].rate = 2 * RATE;
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR((s[1].bytes - before) * 8, RATE * 2 / 10, 0.03);
	rig_free(&rig);
}

/* In the long run each class gets its rate, and a share of the rest. */
static void hfsc_rates(void)
{
	struct stream s[] = {stream_of(0, RATE), stream_of(1, RATE), stream_of(2, RATE / 20)};
	struct wire_classes plan = plan_of(SCHEDULER_HFSC, 3);
	struct rig rig;

	plan.class[0].rate = RATE / 10;
	plan.class[1].rate = RATE * 4 / 10;
	plan.class[2].rate = RATE * 4 / 10;
	rig_init(&rig, &plan, s, 3);
	rig_run(&rig, rig.now + 2 * SECOND);
	CHECK_NEAR(rig_rate(&s[2], 2 * SECOND), RATE / 20, 0.01);
	CHECK_NEAR(rig_rate(&s[0], 2 * SECOND), RATE * 19 / 100, 0.06);
	CHECK_NEAR(rig_rate(&s[1], 2 * SECOND), RATE * 76 / 100, 0.06);
	rig_free(&rig);
}

static void hfsc_ceil(void)
{
	struct stream s[] = {stream_of(0, RATE), stream_of(1, RATE / 10)};
	struct wire_classes plan = plan_of(SCHEDULER_HFSC, 2);
	struct rig rig;

	plan.class[0].rate = RATE / 10;
	plan.class[0].ceil = RATE * 3 / 10;
	plan.class[1].rate = RATE / 2;
	rig_init(&rig, &plan, s, 2);
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR(rig_rate(&s[0], SECOND), RATE * 3 / 10, 0.02);
	CHECK_NEAR(rig_rate(&s[1], SECOND), RATE / 10, 0.01);
	rig_free(&rig);
}

/*
 * A class of little rate and a high peak: its packets leave as soon as its peak says, although the
 * others fill the port. With the rate alone they wait many times longer.
 */
static uint64_t hfsc_wait(bool peak)
{
	struct stream s[] = {{.length = 160, .dscp = 0, .rate = RATE / 100, .port = 1},
			     stream_of(1, RATE),
			     stream_of(2, RATE)};
	struct wire_classes plan = plan_of(SCHEDULER_HFSC, 3);
	struct rig rig;

	plan.class[0].rate = RATE / 100;
	if (peak) {
		plan.class[0].peak = RATE / 10;
		plan.class[0].peak_ns = 200000;
	}
	plan.class[1].rate = plan.class[2].rate = RATE * 45 / 100;
	rig_init(&rig, &plan, s, 3);
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR(rig_rate(&s[0], SECOND), RATE / 100, 0.02);
	CHECK_EQ(s[0].dropped, 0);
	rig_free(&rig);
	return s[0].wait_sum / s[0].sent;
}

static void hfsc_peak(void)
{
	uint64_t with = hfsc_wait(true), without = hfsc_wait(false);
	/* 160 bytes at 10 Mb/s, and one packet of another that has begun */
	CHECK(with <= 128000 + 120000 + 10000);
	CHECK(without >= 2 * with);
}

/* A class that was idle gets no more than its share for that. */
static void hfsc_idle(void)
{
	struct stream s[] = {stream_of(0, RATE), stream_of(1, 0)};
	struct wire_classes plan = plan_of(SCHEDULER_HFSC, 2);
	struct rig rig;
	uint64_t sent;

	plan.class[0].rate = plan.class[1].rate = RATE * 3 / 10;
	rig_init(&rig, &plan, s, 2);
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR(rig_rate(&s[0], SECOND), RATE, 0.01);
	s[1].rate = RATE;
	sent = s[0].bytes;
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR((s[0].bytes - sent) * 8, RATE / 2, 0.03);
	CHECK_NEAR(s[1].bytes * 8, RATE / 2, 0.03);
	rig_free(&rig);
}

/* A packet that had to be known in advance is dropped like any other, once its slot is over. */
static void hfsc_slots(void)
{
	struct stream s[] = {stream_of(0, 0), stream_of(1, 0)};
	struct wire_classes plan = plan_of(SCHEDULER_HFSC, 2);
	struct rig rig;

	plan.class[0].rate = RATE / 2;
	plan.class[1].rate = 8000;
	plan.class[1].discipline = DISCIPLINE_SLOT;
	plan.class[1].target_ns = MS;
	rig_init(&rig, &plan, s, 2);
	rig_put(&rig, 1);
	rig_run(&rig, rig.now + MS);
	CHECK_EQ(s[1].sent, 1); /* its turn is over for a second and a half */
	for (unsigned i = 0; i < 50; i++)
		rig_put(&rig, 0);
	rig_put(&rig, 1);
	rig_run(&rig, rig.now + 10 * MS);
	CHECK_EQ(s[0].sent, 50);
	CHECK_EQ(s[1].sent, 1);
	CHECK_EQ(rig.scheduler->report[1].late, 1);
	rig_free(&rig);
}

int main(void)
{
	strict();
	htb_borrows();
	htb_ceil_and_priority();
	htb_keeps_grants();
	hfsc_rates();
	hfsc_ceil();
	hfsc_peak();
	hfsc_idle();
	hfsc_slots();
	return 0;
}
