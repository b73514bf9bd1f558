/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon reads in the telemetry memfd is what happened, and what it writes there is
 * followed.
 */
#include <sys/mman.h>

#include "test.h"

#define PACKETS 640

static const struct telemetry_header *map(struct broker *broker, unsigned end,
					  struct telemetry_header **writable)
{
	size_t size = LAYOUT_PAGE + TELEMETRY_BLOCK;

	*writable = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			 broker_telemetry(broker, end), 0);
	CHECK(*writable != MAP_FAILED);
	return *writable;
}

static const struct telemetry_block *block_of(const struct telemetry_header *h)
{
	return (const struct telemetry_block *)((const uint8_t *)h + LAYOUT_PAGE);
}

static uint64_t measured(const struct telemetry_block *b)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < HISTOGRAM_SIZE; i++)
		n += atomic_load(&b->histogram[i]);
	return n;
}

/* The end takes a new order at a look that is PERIOD_NS after the last one. */
static void set_sampling(struct pair *p, struct telemetry_header *h, uint32_t shift)
{
	atomic_store(&h->sample_shift, shift);
	usleep(300000);
	test_service(p->a, p->b);
}

static void traffic(struct pair *p)
{
	for (uint32_t i = 0; i < PACKETS; i++) {
		test_send(p->a, 0, 100, i);
		test_receive(p->b, 0, 100, i);
	}
}

int main(void)
{
	struct broker_options o = {.sample_shift = 3};
	struct pair p = test_pair(&o, DRAY_MODE_BUSY, 0);
	struct telemetry_header *ha, *hb;
	const struct telemetry_block *a = block_of(map(p.broker, 0, &ha)),
				     *b = block_of(map(p.broker, 1, &hb));
	uint64_t first;

	/* A link that has been idle stamps every packet, until it gets a new order. */
	set_sampling(&p, ha, 0);
	set_sampling(&p, ha, 3);
	traffic(&p);
	UNTIL(atomic_load(&b->counters[COUNT_RX_PACKETS]) == PACKETS, test_service(p.a, p.b));
	UNTIL(atomic_load(&a->counters[COUNT_TX_BYTES]) == PACKETS * 100, test_service(p.a, p.b));
	CHECK_EQ(atomic_load(&ha->magic), TELEMETRY_MAGIC);
	CHECK_EQ(atomic_load(&ha->version), 1);
	CHECK_EQ(atomic_load(&ha->state), TELEMETRY_LIVE);
	CHECK_EQ(atomic_load(&hb->generation), 1);
	CHECK(atomic_load(&ha->tick_hz) > 1000000);
	first = measured(b);
	CHECK_EQ(first, PACKETS / 8);
	CHECK_EQ(first, test_stats(p.b).stamps);
	CHECK_EQ(measured(a), 0);

	set_sampling(&p, ha, 0); /* every packet, from now on */
	traffic(&p);
	UNTIL(measured(b) >= first + PACKETS, test_service(p.a, p.b));
	CHECK_EQ(measured(b), first + PACKETS);
	set_sampling(&p, ha, SAMPLE_NONE);
	traffic(&p);
	CHECK_EQ(test_stats(p.b).stamps, first + PACKETS);
	CHECK_EQ(dray_close(p.b), 0);
	UNTIL(atomic_load(&ha->state) == TELEMETRY_DOWN, test_service(p.a, NULL));
	CHECK_EQ(dray_close(p.a), 0);
	munmap(ha, LAYOUT_PAGE + TELEMETRY_BLOCK);
	munmap(hb, LAYOUT_PAGE + TELEMETRY_BLOCK);
	broker_stop(p.broker);
	return 0;
}
