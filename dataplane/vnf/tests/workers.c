/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers by the links of their ports: one that goes is passed over, one that does not take packets
 * loses only its own.
 */
#include <rte_eal.h>
#include <rte_ring.h>

#include "files.h"
#include "ringport.h"
#include "work.h"

#define PORTS 4u  /* the NIC's and three workers' */
#define FLOWS 48u /* in each burst, one packet each */
#define ROOM 63u  /* of a worker's ring */
#define LENGTH 60u

static struct rte_mempool *pool;
static struct program program;
static struct counters counters;
static struct rte_ring *to[PORTS]; /* what was sent by each port */
static struct worker w;

static void put_flow(uint8_t *frame, unsigned flow)
{
	memset(frame, 0, LENGTH);
	put16(frame + 12, TYPE_IP4);
	frame[ETHERNET] = 0x45;
	frame[ETHERNET + 9] = PROTOCOL_UDP;
	put32(frame + ETHERNET + 12, 0x0a000001);
	put32(frame + ETHERNET + 16, 0x0a000002);
	put16(frame + ETHERNET + IP4, 5010 + flow);
}

/* A packet of each flow from the NIC. */
static void burst(void)
{
	struct rte_mbuf *m[FLOWS];

	CHECK_EQ(rte_pktmbuf_alloc_bulk(pool, m, FLOWS), 0);
	for (unsigned i = 0; i < FLOWS; i++)
		put_flow((uint8_t *)rte_pktmbuf_append(m[i], LENGTH), i);
	w.handle(&w, 0, m, FLOWS);
	work_flush(&w);
}

/* Where each flow's packet is; each must be there once, in the order in which they came. */
static void where(unsigned worker[FLOWS])
{
	struct rte_mbuf *m = NULL;
	unsigned all = 0;

	for (unsigned i = 0; i < PORTS; i++) {
		int last = -1;

		while (rte_ring_dequeue(to[i], (void **)&m) == 0) {
			unsigned flow =
				get16(rte_pktmbuf_mtod(m, uint8_t *) + ETHERNET + IP4) - 5010;

			CHECK((int)flow > last);
			last = (int)flow;
			worker[flow] = i;
			all++;
			rte_pktmbuf_free(m);
		}
	}
	CHECK_EQ(all, FLOWS);
}

static void test_link_goes_and_comes(void)
{
	unsigned before[FLOWS], without[FLOWS], after[FLOWS], moved = 0;

	burst();
	where(before);
	CHECK_EQ(rte_eth_dev_set_link_down(program.device[2]), 0);
	links_watch(&program);
	burst();
	where(without);
	for (unsigned i = 0; i < FLOWS; i++) {
		CHECK(without[i] == 1 || without[i] == 3);
		CHECK(before[i] == 2 || without[i] == before[i]);
		moved += before[i] == 2;
	}
	CHECK(moved > 0 && moved < FLOWS);
	links_watch(&program); /* nothing new */
	CHECK_EQ(program.function.lb.rebalances, 1);
	CHECK_EQ(rte_eth_dev_set_link_up(program.device[2]), 0);
	links_watch(&program);
	burst();
	where(after);
	CHECK(memcmp(after, before, sizeof(after)) == 0);
	CHECK_EQ(program.function.lb.rebalances, 2);
}

static void test_nobody(void)
{
	for (unsigned i = 1; i < PORTS; i++)
		CHECK_EQ(rte_eth_dev_set_link_down(program.device[i]), 0);
	links_watch(&program);
	burst();
	CHECK_EQ(counters.dropped[DROP_WORKER], FLOWS);
	for (unsigned i = 1; i < PORTS; i++)
		CHECK_EQ(rte_eth_dev_set_link_up(program.device[i]), 0);
	links_watch(&program);
}

/*
 * Nobody takes what was sent to worker 1, until its ring is full; the others' flows lose nothing.
 */
static void test_full(void)
{
	unsigned of_first = 0, rounds = 0;
	struct rte_mbuf *m[ROOM];

	for (uint64_t before = counters.sent[1]; counters.not_taken[1] == 0; rounds++) {
		CHECK(rounds < 10 * ROOM);
		burst();
		of_first = (unsigned)(counters.sent[1] - before);
		for (unsigned i = 2; i < PORTS; i++) {
			unsigned n = rte_ring_dequeue_burst(to[i], (void **)m, ROOM, NULL);

			rte_pktmbuf_free_bulk(m, n);
		}
	}
	CHECK_EQ(of_first, ROOM);
	CHECK_EQ(counters.dropped[DROP_TX], counters.not_taken[1]);
	CHECK_EQ(counters.not_taken[2] + counters.not_taken[3] + counters.not_taken[0], 0);
}

int main(int argc, char **argv)
{
	CHECK(rte_eal_init(argc, argv) >= 0);
	pool = rte_pktmbuf_pool_create("test", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	CHECK(pool != NULL);
	program.options = (struct options){.mode = MODE_LB, .burst = 32};
	program.ports = program.function.ports = PORTS;
	program.function.mode = MODE_LB;
	for (unsigned i = 0; i < PORTS; i++)
		program.device[i] = ring_port(i, pool, &to[i]);
	CHECK_EQ(lb_open(&program.function.lb, false, 1), 0);
	links_open(&program);
	CHECK_EQ(program.function.lb.up, 0xe);
	CHECK_EQ(program.function.lb.rebalances, 0);
	work_open(&w, &program, &counters, 0, NULL);
	test_link_goes_and_comes();
	test_nobody();
	test_full();
	rte_eal_cleanup();
	return 0;
}
