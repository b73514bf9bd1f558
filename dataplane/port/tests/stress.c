/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sender and receiver in two threads over one mapping, where ThreadSanitizer sees both: bursts of
 * all sizes, and releases by a third.
 */
#include <pthread.h>
#include <sched.h>

#include "memory.h"
#include "still.h"
#include "test.h"

#define PACKETS 60000

static struct bed bed;
static unsigned burst; /* at most */

static void *sender(void *unused)
{
	struct dray_owner *tx = &bed.tx->owner;
	uint32_t sent = 0;

	(void)unused;
	atomic_store(&tx->thread, thread_self());
	while (sent < PACKETS) {
		struct dray_pkt p[16];
		unsigned want = 1 + sent / 3 % burst, n = tx->ops->alloc(tx, p, want, 64);

		for (unsigned i = 0; i < n; i++)
			test_fill(&p[i], 64, sent + i);
		CHECK_EQ(tx->ops->send(tx, p, n), n);
		sent += n;
		if (n == 0)
			sched_yield();
	}
	return NULL;
}

static struct dray_pkt box[32];
static _Atomic uint32_t box_in, box_out;

static void *releaser(void *unused)
{
	(void)unused;
	for (uint32_t out = 0; out < PACKETS / 2; out++) {
		while (atomic_load_explicit(&box_in, memory_order_acquire) == out)
			sched_yield();
		dray_release(&box[out % 32], 1);
		atomic_store_explicit(&box_out, out + 1, memory_order_release);
	}
	return NULL;
}

static void receive(void)
{
	struct dray_owner *rx = &bed.rx->owner;
	uint32_t got = 0, in = 0;

	while (got < PACKETS) {
		struct dray_pkt p[16];
		unsigned n = rx->ops->recv(rx, p, 1 + got % 16);

		for (unsigned i = 0; i < n; i++, got++) {
			test_check(&p[i], 64, got);
			if (got % 2) {
				while (in - atomic_load_explicit(&box_out, memory_order_acquire) ==
				       32)
					sched_yield();
				box[in % 32] = p[i];
				atomic_store_explicit(&box_in, ++in, memory_order_release);
			} else {
				dray_release(&p[i], 1);
			}
		}
		if (n == 0)
			sched_yield();
	}
}

static void run(unsigned largest_burst)
{
	pthread_t threads[2];

	burst = largest_burst;
	atomic_store(&box_in, 0);
	atomic_store(&box_out, 0);
	bed = bed_make(0u - 100, 0, FEATURES_KNOWN);
	CHECK_EQ(pthread_create(&threads[0], NULL, sender, NULL), 0);
	CHECK_EQ(pthread_create(&threads[1], NULL, releaser, NULL), 0);
	receive();
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	for (unsigned k = 0; k < DRAY_VIOLATIONS; k++) {
		CHECK_EQ(bed_violations(bed.tx_counters, k), 0);
		CHECK_EQ(bed_violations(bed.rx_counters, k), 0);
	}
	CHECK(atomic_load(&bed.rx_counters->stamps) > 0);
	owner_drain(&bed.rx->owner);
	bed_free(&bed);
}

/* Bursts of one and two make single packets common, whose descriptor comes with the tail. */
int main(void)
{
	run(16);
	run(2);
	run(1);
	run(2);
	return 0;
}
