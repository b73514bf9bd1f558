/* SPDX-License-Identifier: Apache-2.0 */
/* What each queueing discipline drops, and in which order packets leave. */
#include "rig.h"

#include <math.h>
#include <string.h>

#define RATE 100000000ull /* bit/s */
#define LONG 1500
#define BURST 3000

/* A full FIFO drops what comes; what leaves keeps its order, at the rate. */
static void fifo(void)
{
	struct stream s[] = {{.length = LONG, .rate = 2 * RATE}};
	struct wire_classes plan = rig_plan(DISCIPLINE_PFIFO, 50, RATE, BURST);
	struct rig rig;

	rig_init(&rig, &plan, s, 1);
	rig_run(&rig, rig.now + SECOND);
	CHECK_NEAR(rig_rate(&s[0], SECOND), RATE, 0.002);
	CHECK_NEAR(s[0].dropped, s[0].offered / 2, 0.02);
	CHECK_NEAR(s[0].wait_max, 50 * LONG * 8 * SECOND / RATE, 0.03);
	CHECK_EQ(rig.scheduler->report[0].queued_most, 50);
	CHECK_EQ(rig.scheduler->report[0].dropped, s[0].dropped);
	CHECK_EQ(rig.scheduler->report[0].packets, s[0].sent);
	CHECK_NEAR(rig.scheduler->report[0].longest_ns, s[0].wait_max, 0);
	rig_free(&rig);
}

static void fifo_of_bytes(void)
{
	struct stream s[] = {{.length = 100}};
	struct wire_classes plan = rig_plan(DISCIPLINE_BFIFO, 1000, RATE, 64);
	struct rig rig;

	rig_init(&rig, &plan, s, 1);
	for (unsigned i = 0; i < 20; i++)
		rig_put(&rig, 0);
	CHECK_EQ(s[0].dropped, 10);
	rig_free(&rig);
	CHECK_EQ(s[0].dropped, 20);
}

/* A burst passes at once, then the rate holds; a pause fills the bucket again, and not further. */
static void token_bucket(void)
{
	struct stream s[] = {{.length = 1000}};
	struct wire_classes plan = rig_plan(DISCIPLINE_PFIFO, 1000, RATE, 10000);
	struct rig rig;

	rig_init(&rig, &plan, s, 1);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 100; i++)
			rig_put(&rig, 0);
		CHECK_EQ(rig_take(&rig, NULL), 11); /* the last one causes the debt */
		CHECK_EQ(scheduler_due(rig.scheduler, rig.now), rig.now + 1000 * 8 * 10 + 1);
		rig.now += 80001;
		CHECK_EQ(rig_take(&rig, NULL), 1);
		rig_run(&rig, rig.now + SECOND);
	}
	CHECK_EQ(s[0].sent, 300);
	rig_free(&rig);
}

/* A packet that need not wait passes: the bucket is charged all the same. */
static void passing(void)
{
	struct stream s[] = {{.length = 1000}};
	struct wire_classes plan = rig_plan(DISCIPLINE_FQ_CODEL, 1000, RATE, 4000);
	struct dray_pkt pkts[8];
	struct rig rig;

	rig_init(&rig, &plan, s, 1);
	for (unsigned i = 0; i < 8; i++)
		pkts[i] = rig_packet(&rig, 0);
	CHECK_EQ(scheduler_pass(rig.scheduler, pkts, 8, rig.now), 5);
	scheduler_put(rig.scheduler, &pkts[5], 3, rig.now);
	CHECK_EQ(scheduler_pass(rig.scheduler, pkts, 1, rig.now + SECOND), 0); /* others wait */
	CHECK_EQ(rig_take(&rig, NULL), 0);
	for (unsigned i = 0; i < 5; i++)
		free(pkts[i].owner);
	s[0].offered = 3;
	rig_free(&rig);
}

/* Flows share the rate, whatever they offer; who offers less gets all of that. */
static void fairness(enum class_discipline discipline)
{
	struct stream s[] = {{.length = LONG, .rate = 8 * RATE / 10, .port = 1},
			     {.length = 300, .rate = 8 * RATE / 10, .port = 2},
			     {.length = LONG, .rate = 3 * RATE, .port = 3},
			     {.length = 100, .rate = RATE / 100, .port = 4}};
	struct wire_classes plan = rig_plan(discipline, 127, RATE, BURST);
	struct rig rig;

	if (discipline == DISCIPLINE_FQ_CODEL)
		plan.class[0].limit = 1000;
	rig_init(&rig, &plan, s, 4);
	rig_run(&rig, rig.now + 2 * SECOND);
	for (unsigned i = 0; i < 3; i++)
		CHECK_NEAR(rig_rate(&s[i], 2 * SECOND), 33 * RATE / 100, 0.06);
	CHECK_NEAR(rig_rate(&s[3], 2 * SECOND), RATE / 100, 0.01);
	CHECK_EQ(s[3].dropped, 0);
	/* up to two packets of each other flow are before it; of a new one, what is being sent */
	CHECK(s[3].wait_max < (discipline == DISCIPLINE_SFQ ? 8 : 3) * LONG * 8 * SECOND / RATE);
	rig_free(&rig);
}

/* RFC 8289, section 5.3 to 5.5, in floating point: when CoDel drops while the queue stands. */
static void codel_schedule(void)
{
	struct stream s[] = {{.length = LONG, .rate = RATE + RATE / 10}};
	struct wire_classes plan = rig_plan(DISCIPLINE_CODEL, 60000, RATE, BURST);
	uint64_t drops[64];
	struct rig rig;
	double at;

	rig_init(&rig, &plan, s, 1);
	rig.drops = drops;
	rig.drop_most = 64;
	rig_run(&rig, rig.now + 2 * SECOND);
	CHECK(rig.drop_count > 40);
	at = (double)drops[0];
	for (unsigned i = 1; i < 40; i++) {
		at += 100e6 / sqrt(i);
		/* dropping waits for the next packet that leaves */
		CHECK((double)drops[i] >= at - 1e4 && (double)drops[i] < at + 3 * 120e3);
	}
	rig_free(&rig);
}

/* A queue that empties within the interval is left alone. */
static void codel_bursts(void)
{
	struct stream s[] = {{.length = LONG}};
	struct wire_classes plan = rig_plan(DISCIPLINE_CODEL, 1000, RATE, BURST);
	struct rig rig;

	rig_init(&rig, &plan, s, 1);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 500; i++) /* 60 ms of the rate */
			rig_put(&rig, 0);
		rig_run(&rig, rig.now + 80 * MS);
	}
	CHECK_EQ(s[0].dropped, 0);
	CHECK_EQ(s[0].sent, 20 * 500);
	rig_free(&rig);
}

/* Packets that can be marked are, and are not dropped. */
static void marking(enum class_discipline discipline)
{
	struct stream s[] = {{.length = LONG, .rate = RATE + RATE / 10, .ecn = 2}};
	struct wire_classes plan = rig_plan(discipline, 60000, RATE, BURST);
	struct rig rig;

	plan.class[0].flags = CLASS_ECN;
	rig_init(&rig, &plan, s, 1);
	rig_run(&rig, rig.now + SECOND);
	CHECK_EQ(s[0].dropped, 0);
	CHECK(rig.scheduler->report[0].marked > 20);
	rig_free(&rig);
}

/* No packet leaves after its slot, and every slot begins with an empty queue. */
static void slots(void)
{
	struct stream s[] = {{.length = LONG, .rate = RATE + RATE / 4}};
	struct wire_classes plan = rig_plan(DISCIPLINE_SLOT, 1000, RATE, LONG);
	const uint64_t slot = 2 * MS, offset = 300000;
	struct rig rig;

	plan.class[0].target_ns = slot;
	plan.class[0].interval_ns = offset;
	rig_init(&rig, &plan, s, 1);
	rig.now = 7 * SECOND + offset;
	for (unsigned i = 0; i < 200; i++) {
		uint64_t sent = s[0].sent, end = rig.now + slot;

		rig_run(&rig, end);
		CHECK(s[0].wait_last < slot);
		CHECK_EQ(rig.scheduler->waiting, 0);
		CHECK(s[0].sent - sent >= 15 && s[0].sent - sent <= 17); /* 16.7 packets */
	}
	CHECK_EQ(rig.scheduler->report[0].late, s[0].dropped);
	CHECK_NEAR(s[0].dropped, s[0].offered / 5, 0.1);
	rig_free(&rig);
}

/* What cannot make it is dropped when it comes, not when its turn comes. */
static void slot_is_full(void)
{
	struct stream s[] = {{.length = LONG}};
	struct wire_classes plan = rig_plan(DISCIPLINE_SLOT, 1000, RATE, LONG);
	struct rig rig;

	plan.class[0].target_ns = 2 * MS;
	rig_init(&rig, &plan, s, 1);
	for (unsigned i = 0; i < 40; i++)
		rig_put(&rig, 0);
	CHECK_EQ(rig.scheduler->waiting, 16); /* 120 us each */
	CHECK_EQ(rig.scheduler->report[0].late, 24);
	rig_free(&rig);
}

/* Late because others were first: found when its turn comes. */
static void slot_behind_others(void)
{
	struct stream s[] = {{.length = LONG, .dscp = 46}, {.length = LONG}};
	struct wire_classes plan = {
		.scheduler = SCHEDULER_STRICT, .classes = 2, .rate = RATE, .burst = 64};
	struct rig rig;

	plan.class[0].limit = 1000;
	plan.class[0].dscp = 1ull << 46;
	plan.class[1] =
		(struct wire_class){.discipline = DISCIPLINE_SLOT, .limit = 100, .target_ns = MS};
	rig_init(&rig, &plan, s, 2);
	for (unsigned i = 0; i < 20; i++)
		rig_put(&rig, 0); /* 2.4 ms of the rate */
	rig_put(&rig, 1);
	rig_run(&rig, rig.now + 5 * MS);
	CHECK_EQ(s[0].sent, 20);
	CHECK_EQ(s[1].sent, 0);
	CHECK_EQ(rig.scheduler->report[1].late, 1);
	rig_free(&rig);
}

/* With fewer buffers than the queues' limits, the longest queue gives way. */
static void little_room(void)
{
	struct stream s[] = {{.length = 100, .dscp = 46}, {.length = 100}};
	struct wire_classes plan = {
		.scheduler = SCHEDULER_STRICT, .classes = 2, .rate = RATE, .burst = 64};
	struct rig rig;

	plan.class[0].limit = plan.class[1].limit = 1000;
	plan.class[0].dscp = 1ull << 46;
	rig_init(&rig, &plan, s, 2);
	scheduler_set_room(rig.scheduler, 100);
	for (unsigned i = 0; i < 200; i++)
		rig_put(&rig, 1);
	for (unsigned i = 0; i < 10; i++)
		rig_put(&rig, 0);
	CHECK_EQ(rig.scheduler->waiting, 100);
	CHECK_EQ(s[0].dropped, 0);
	CHECK_EQ(s[1].dropped, 110);
	scheduler_set_room(rig.scheduler, 5);
	CHECK_EQ(rig.scheduler->waiting, 5);
	rig_free(&rig);
}

int main(void)
{
	fifo();
	fifo_of_bytes();
	token_bucket();
	passing();
	fairness(DISCIPLINE_SFQ);
	fairness(DISCIPLINE_FQ_CODEL);
	codel_schedule();
	codel_bursts();
	marking(DISCIPLINE_CODEL);
	marking(DISCIPLINE_FQ_CODEL);
	slots();
	slot_is_full();
	slot_behind_others();
	little_room();
	return 0;
}
