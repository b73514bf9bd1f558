/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that other threads release come back, each once; also after close. */
#include <pthread.h>

#include "test.h"

#define THREADS 3
#define PACKETS 30000

static struct dray_pkt box[THREADS][64];
static _Atomic unsigned filled[THREADS], emptied[THREADS];
static _Atomic bool done;

static void *releaser(void *argument)
{
	unsigned me = *(unsigned *)argument;

	for (;;) {
		unsigned have = atomic_load_explicit(&filled[me], memory_order_acquire);
		unsigned at = atomic_load_explicit(&emptied[me], memory_order_relaxed);

		if (at == have) {
			if (atomic_load(&done) && atomic_load(&filled[me]) == at)
				return NULL;
			usleep(10);
			continue;
		}
		for (; at != have; at++)
			dray_release(&box[me][at % 64], 1);
		atomic_store_explicit(&emptied[me], at, memory_order_release);
	}
}

static bool hand_over(unsigned to, const struct dray_pkt *p)
{
	unsigned at = atomic_load_explicit(&filled[to], memory_order_relaxed);

	if (at - atomic_load_explicit(&emptied[to], memory_order_acquire) == 64)
		return false;
	box[to][at % 64] = *p;
	atomic_store_explicit(&filled[to], at + 1, memory_order_release);
	return true;
}

static void stress(struct pair *p)
{
	pthread_t threads[THREADS];
	unsigned ids[THREADS];
	uint32_t sent = 0, got = 0;
	struct dray_pkt none;

	for (unsigned i = 0; i < THREADS; i++) {
		ids[i] = i;
		CHECK_EQ(pthread_create(&threads[i], NULL, releaser, &ids[i]), 0);
	}
	UNTIL(got == PACKETS, {
		struct dray_pkt t, r;

		if (sent < PACKETS && dray_tx_alloc(p->a, 0, &t, 1, 64)) {
			test_fill(&t, 64, sent++);
			CHECK_EQ(dray_tx_burst(p->a, 0, &t, 1), 1);
		}
		if (dray_rx_burst(p->b, 0, &r, 1)) {
			test_check(&r, 64, got++);
			while (!hand_over(got % THREADS, &r))
				usleep(10);
		}
	});
	atomic_store(&done, true);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(dray_rx_burst(p->b, 0, &none, 1), 0);
	CHECK_EQ(test_stats(p->b).held, 0);
	CHECK_EQ(test_stats(p->b).misuse, 0);
}

/* The same buffer twice: by one thread each, before the queue's thread looks. */
static void doubled(struct pair *p)
{
	struct dray_pkt r, copy;

	test_send(p->a, 0, 64, 1);
	CHECK_EQ(dray_rx_burst(p->b, 0, &r, 1), 1);
	copy = r;
	test_release_elsewhere(&r);
	test_release_elsewhere(&copy);
	CHECK_EQ(test_stats(p->b).misuse, 1);
	CHECK_EQ(dray_rx_burst(p->b, 0, &r, 1), 0);
	CHECK_EQ(test_stats(p->b).held, 0);
}

/* Buffers of a generation that both ends have left: received, and allocated. */
static void of_an_old_generation(struct pair *p)
{
	uint32_t before = test_generation(p->a);
	uint64_t misuse = test_stats(p->b).misuse;
	struct dray_pkt received, allocated, none;

	test_send(p->a, 0, 900, 1);
	CHECK_EQ(dray_rx_burst(p->b, 0, &received, 1), 1);
	CHECK_EQ(dray_tx_alloc(p->b, 0, &allocated, 1, 64), 1);
	broker_move_shm(p->broker);
	UNTIL(test_generation(p->a) > before && test_generation(p->b) > before,
	      test_service(p->a, p->b));
	test_send(p->a, 0, 64, 2);
	test_receive(p->b, 0, 64, 2);
	test_send(p->b, 0, 64, 3);
	test_receive(p->a, 0, 64, 3);
	test_release_elsewhere(&received);
	test_release_elsewhere(&allocated);
	UNTIL(test_stats(p->b).maps == 1, {
		CHECK_EQ(dray_rx_burst(p->b, 0, &none, 1), 0);
		test_service(p->a, p->b);
	});
	CHECK_EQ(test_stats(p->b).held, 0);
	CHECK_EQ(test_stats(p->b).misuse, misuse);
}

int main(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, 0);
	struct dray_pkt kept[3];

	stress(&p);
	doubled(&p);
	of_an_old_generation(&p);
	for (uint32_t i = 0; i < 3; i++)
		test_send(p.a, 0, 900, i);
	CHECK_EQ(dray_rx_burst(p.b, 0, kept, 3), 3);
	test_pair_close(&p);
	for (uint32_t i = 0; i < 3; i++)
		test_check(&kept[i], 900, i); /* still mapped */
	test_release_elsewhere(&kept[1]);
	dray_release(&kept[0], 1);
	dray_release(&kept[2], 1);
	return 0;
}
