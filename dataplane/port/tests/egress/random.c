/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans, packets and times at random: no packet is lost or doubled, what may be sent is sent in the
 * end, no rate is exceeded, and the sanitizers find nothing.
 */
#include <string.h>

#include "rig.h"

#define ROUNDS 400
#define STEPS 400
#define STREAMS 12

static uint64_t state = 88172645463325252ull;

static uint64_t number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t below(uint64_t n)
{
	return number() % n;
}

/* A rate over all orders of magnitude. */
static uint64_t some_rate(void)
{
	uint64_t rate = 8 + (number() >> (20 + below(40)));

	return rate < CLASS_RATE_MAX ? rate : CLASS_RATE_MAX;
}

static void some_discipline(struct wire_class *c)
{
	c->discipline = (uint8_t)below(DISCIPLINES);
	c->limit = (uint32_t)(1 + below(c->discipline == DISCIPLINE_BFIFO ? 60000 : 60));
	if (c->discipline == DISCIPLINE_BFIFO)
		c->limit += 64;
	if (c->discipline == DISCIPLINE_CODEL || c->discipline == DISCIPLINE_FQ_CODEL) {
		c->target_ns = (uint32_t)(1 + below(1000000));
		c->interval_ns = c->target_ns + (uint32_t)below(10000000);
		c->flags = below(2) ? CLASS_ECN : 0;
	}
	if (c->discipline == DISCIPLINE_SLOT) {
		c->target_ns = (uint32_t)(1000 + below(10000000));
		c->interval_ns = (uint32_t)below(c->target_ns);
		c->flags = below(2) ? CLASS_REALTIME : 0;
	}
}

static void some_shares(struct wire_class *c, uint32_t scheduler)
{
	if (scheduler != SCHEDULER_HTB && scheduler != SCHEDULER_HFSC)
		return;
	c->rate = some_rate();
	c->ceil = c->rate + below(c->rate);
	if (c->ceil > CLASS_RATE_MAX)
		c->ceil = CLASS_RATE_MAX;
	if (scheduler == SCHEDULER_HTB) {
		c->peak = 64 + below(100000);
		c->priority = (uint8_t)below(8);
		return;
	}
	if (below(2))
		c->ceil = 0;
	if (below(2)) {
		c->peak = some_rate();
		c->peak_ns = (uint32_t)(1 + below(100000000));
	}
}

static struct wire_classes some_plan(void)
{
	struct wire_classes plan = {.scheduler = (uint32_t)below(4)};

	plan.classes = plan.scheduler ? (uint32_t)(1 + below(CLASSES_MAX)) : 1;
	if (below(4) || plan.scheduler >= SCHEDULER_HTB) {
		plan.rate = some_rate();
		plan.burst = (uint32_t)(64 + below(100000));
	}
	for (uint32_t i = 0; i < plan.classes; i++) {
		some_discipline(&plan.class[i]);
		some_shares(&plan.class[i], plan.scheduler);
		plan.class[i].dscp = below(3) ? number() : 0;
	}
	CHECK(classes_valid(&plan));
	return plan;
}

static void some_streams(struct stream *s)
{
	for (unsigned i = 0; i < STREAMS; i++)
		s[i] = (struct stream){.length = 60 + (uint32_t)below(1500),
				       .dscp = (uint8_t)below(64),
				       .ecn = (uint8_t)below(4),
				       .port = (uint16_t)number()};
}

/* What has left may exceed the rate by the burst and one packet. */
static void check_rate(const struct rig *rig, const struct stream *s, uint64_t began)
{
	const struct wire_classes *plan = &rig->scheduler->plan;
	double seconds = (double)(rig->now - began) / 1e9, most;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < STREAMS; i++)
		bytes += s[i].bytes;
	most = plan->burst + 1600 + seconds * (double)plan->rate / 8 * 1.001;
	/* HTB grants what its classes were promised, even if that is more than the root has */
	if (plan->rate && plan->scheduler != SCHEDULER_HTB)
		CHECK((double)bytes <= most);
}

/* If nothing more comes, everything leaves, or is dropped. */
static void drain(struct rig *rig)
{
	for (unsigned i = 0; rig->scheduler->waiting; i++) {
		uint64_t due = scheduler_due(rig->scheduler, rig->now);

		CHECK(due != UINT64_MAX && due >= rig->now);
		CHECK(i < 100000);
		rig->now = due;
		(void)rig_take(rig, NULL);
	}
	CHECK_EQ(scheduler_due(rig->scheduler, rig->now), UINT64_MAX);
}

static void one_round(void)
{
	struct wire_classes plan = some_plan();
	struct stream s[STREAMS];
	struct rig rig;
	uint64_t began;

	some_streams(s);
	rig_init(&rig, &plan, s, STREAMS);
	began = rig.now;
	for (unsigned i = 0; i < STEPS; i++) {
		for (uint64_t n = below(20); n > 0; n--)
			rig_put(&rig, (unsigned)below(STREAMS));
		if (below(50) == 0)
			scheduler_set_room(rig.scheduler, (uint32_t)(1 + below(200)));
		if (below(2))
			(void)rig_take(&rig, NULL);
		rig.now += number() >> (34 + below(28));
		check_rate(&rig, s, began);
	}
	if (below(2))
		drain(&rig);
	rig_free(&rig);
}

int main(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		one_round();
	return 0;
}
