/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Received buffers go back to the peer whoever frees the mbuf, and whenever: the thread that polls,
 * others, a clone that lives longer, after the port was closed.
 */
#include <pthread.h>

#include "rig.h"

#define LONG 1000 /* bytes: attached, not copied */
#define THREADS 3
#define ROUNDS 3000

static struct broker *broker;
static uint16_t a, b;

static struct rte_mbuf *one(uint32_t seed)
{
	struct rte_mbuf *m;

	rig_send(a, 0, rig_make(rig_source(), LONG, seed));
	m = rig_receive(b, 0);
	rig_check(m, LONG, seed);
	CHECK(RTE_MBUF_HAS_EXTBUF(m));
	return m;
}

/* What is out comes back with the next poll. */
static void all_back(void)
{
	struct rte_mbuf *none;

	UNTIL(rig_xstat(b, "held_buffers") == 0, CHECK_EQ(rte_eth_rx_burst(b, 0, &none, 1), 0));
}

static void clones(void)
{
	struct rte_mbuf *m = one(1), *clone = rte_pktmbuf_clone(m, rig_source());

	CHECK(clone != NULL);
	rte_pktmbuf_free(m);
	CHECK_EQ(rig_xstat(b, "held_buffers"), 1);
	rig_check(clone, LONG, 1);
	rte_pktmbuf_free(clone);
	all_back();
}

/* Half of the buffers may be out; what is more is copied, and the link does not stop. */
static void too_many(void)
{
	struct rte_mbuf *m[200];
	unsigned int attached = 0;

	for (uint32_t i = 0; i < 200; i++) {
		rig_send(a, 0, rig_make(rig_source(), LONG, i));
		m[i] = rig_receive(b, 0);
		attached += RTE_MBUF_HAS_EXTBUF(m[i]) != 0;
	}
	CHECK_EQ(attached, 64); /* of 128 */
	CHECK_EQ(rig_xstat(b, "rx_over_hold_packets"), 200 - 64);
	for (uint32_t i = 0; i < 200; i++) {
		rig_check(m[i], LONG, i);
		rte_pktmbuf_free(m[i]);
	}
	all_back();
}

/* Threads that free what another receives. */
struct pipe {
	struct rte_mbuf *m[THREADS][64];
	uint32_t head[THREADS], tail[THREADS];
	uint32_t stop;
};

static struct pipe line;

static void *free_them(void *argument)
{
	const uintptr_t i = (uintptr_t)argument;

	for (;;) {
		uint32_t tail = __atomic_load_n(&line.tail[i], __ATOMIC_ACQUIRE);

		if (tail == line.head[i] && __atomic_load_n(&line.stop, __ATOMIC_RELAXED))
			return NULL;
		for (; line.head[i] != tail;
		     __atomic_store_n(&line.head[i], line.head[i] + 1, __ATOMIC_RELEASE))
			rte_pktmbuf_free(line.m[i][line.head[i] % 64]);
		sched_yield();
	}
}

static bool pass_on(struct rte_mbuf *m, uintptr_t i)
{
	if (line.tail[i] - __atomic_load_n(&line.head[i], __ATOMIC_ACQUIRE) == 64)
		return false;
	line.m[i][line.tail[i] % 64] = m;
	__atomic_store_n(&line.tail[i], line.tail[i] + 1, __ATOMIC_RELEASE);
	return true;
}

static void elsewhere(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, free_them, (void *)i), 0);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		struct rte_mbuf *m;

		rig_send(a, 0, rig_make(rig_source(), LONG, n));
		m = rig_receive(b, 0);
		if (n % 4 == THREADS)
			rte_pktmbuf_free(m);
		else
			UNTIL(pass_on(m, n % 4), sched_yield());
	}
	__atomic_store_n(&line.stop, 1, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	all_back();
}

/* The queue moves from thread to thread, while those who had it free what they got. */
static void *poll_and_free(void *argument)
{
	struct rte_mbuf **kept = argument;

	for (uint32_t i = 0; i < 8; i++)
		kept[i] = one(i);
	for (uint32_t i = 0; i < 4; i++)
		rte_pktmbuf_free(kept[i]);
	return NULL;
}

static void handed_over(void)
{
	struct rte_mbuf *kept[2][8];
	pthread_t thread;

	for (unsigned int round = 0; round < 50; round++) {
		CHECK_EQ(pthread_create(&thread, NULL, poll_and_free, kept[round % 2]), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		for (uint32_t i = 4; i < 8 && round > 0; i++)
			rte_pktmbuf_free(kept[1 - round % 2][i]);
	}
	for (uint32_t i = 4; i < 8; i++)
		rte_pktmbuf_free(kept[1][i]);
	all_back();
}

/* After the port is closed the data stays, until the mbuf is freed. */
static void after_close(void)
{
	struct rte_mbuf *m[6];
	pthread_t thread;

	for (uint32_t i = 0; i < 6; i++)
		m[i] = one(i);
	rig_close(b);
	for (uint32_t i = 0; i < 6; i++)
		rig_check(m[i], LONG, i);
	for (uint32_t i = 0; i < 3; i++)
		rte_pktmbuf_free(m[i]);
	line = (struct pipe){0};
	for (uint32_t i = 3; i < 6; i++)
		CHECK(pass_on(m[i], 0));
	line.stop = 1;
	CHECK_EQ(pthread_create(&thread, NULL, free_them, (void *)0), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	UNTIL(!rig_up(a), usleep(200));
}

int main(void)
{
	broker = rig_begin_pair(&a, &b, "");
	clones();
	too_many();
	elsewhere();
	handed_over();
	after_close();
	b = rig_open(broker, "net_dray1", "b", "");
	rig_wait_up(a, b);
	rig_pass(a, b, LONG, 3);
	rig_close(b);
	rig_close(a);
	rig_end_pair(broker);
	return 0;
}
