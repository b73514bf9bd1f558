/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several threads touch: addresses that the gateway learns, and counters that others read. For
 * ThreadSanitizer.
 */
#include <pthread.h>

#include "files.h"
#include "counters.h"
#include "function.h"

#define ROUNDS 20000u
#define TAGGED 22u

static struct function f;
static struct counters counters[2];
static atomic_bool done;

/*
 * An ARP request of user 0 from one of two addresses, each of which has its own last byte in all
 * places.
 */
static void learn_as(uint8_t last)
{
	static const uint8_t request[] = {0, 1, 8, 0, 6, 4, 0, 1};
	uint8_t frame[64] = {0};
	struct packet p;
	struct change c;

	put16(frame + 12, TYPE_SVLAN);
	put16(frame + 14, 1);
	put16(frame + 16, TYPE_VLAN);
	put16(frame + 18, 1);
	put16(frame + 20, TYPE_ARP);
	memcpy(frame + TAGGED, request, sizeof(request));
	memset(frame + TAGGED + 8, last, MAC);
	put32(frame + TAGGED + 24, f.port[0].ip);
	packet_take(&p, frame, sizeof(frame), 0, SNAPSHOT);
	CHECK_EQ(function_handle(&f, &p, &c), PASS);
	CHECK_EQ(c.reply, REPLY_ARP);
}

static void *learner(void *argument)
{
	uint8_t last = *(uint8_t *)argument;

	for (unsigned i = 0; i < ROUNDS; i++) {
		learn_as(last);
		count(&counters[last / 4].replied[REPLY_ARP], 1);
	}
	return NULL;
}

/* No mixture of two addresses is ever seen. */
static void *reader(void *argument)
{
	struct totals totals;
	uint64_t before = 0;

	(void)argument;
	while (!atomic_load(&done)) {
		uint64_t mac = atomic_load_explicit(&f.bng.macs[0], memory_order_relaxed);

		CHECK(mac == 0x020000000000 || mac == 0x020202020202 || mac == 0x040404040404);
		counters_total(&totals, counters, 2);
		CHECK(totals.replied[REPLY_ARP] >= before &&
		      totals.replied[REPLY_ARP] <= 2 * ROUNDS);
		before = totals.replied[REPLY_ARP];
	}
	return NULL;
}

int main(void)
{
	static uint8_t numbers[2] = {2, 4};
	pthread_t learners[2], other;
	struct totals totals;

	f = (struct function){.mode = MODE_BNG,
			      .ports = 2,
			      .port = {{.ip = 0x0a000001, .mtu = 1500}, {.mtu = 1600}}};
	f.bng = (struct bng){.svlans = 1, .svlan_base = 1, .cvlan_base = 1};
	CHECK_EQ(bng_open(&f.bng, 2), 0);
	CHECK_EQ(pthread_create(&other, NULL, reader, NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&learners[i], NULL, learner, &numbers[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(learners[i], NULL);
	atomic_store(&done, true);
	pthread_join(other, NULL);
	counters_total(&totals, counters, 2);
	CHECK_EQ(totals.replied[REPLY_ARP], 2 * ROUNDS);
	bng_close(&f.bng);
	return 0;
}
