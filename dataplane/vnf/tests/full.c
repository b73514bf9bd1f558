/* SPDX-License-Identifier: Apache-2.0 */
/* What a port or the next stage does not take is dropped, counted, and given back. */
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include "files.h"
#include "work.h"

#define PACKETS 127u /* of the pool */
#define ROOM 31u     /* of a ring of 32 */

static struct rte_mempool *pool;
static struct program program;
static struct counters counters;

static void hand(struct worker *w, struct rte_mbuf **m, unsigned n)
{
	CHECK_EQ(rte_pktmbuf_alloc_bulk(pool, m, n), 0);
	w->emit(w, 0, m, n);
}

static void empty(struct rte_ring *ring)
{
	struct rte_mbuf *m[ROOM];
	unsigned n = rte_ring_dequeue_burst(ring, (void **)m, ROOM, NULL);

	CHECK_EQ(n, ROOM);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(m[i]->refcnt, 1);
	rte_pktmbuf_free_bulk(m, n);
	CHECK_EQ(rte_mempool_avail_count(pool), PACKETS);
}

static struct rte_ring *make_ring(const char *name)
{
	struct rte_ring *ring = rte_ring_create(name, 32, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);

	CHECK(ring != NULL);
	return ring;
}

static void test_port(void)
{
	struct rte_ring *rx = make_ring("rx"), *tx = make_ring("tx");
	struct rte_eth_conf conf = {0};
	struct rte_mbuf *m[BURST_MAX];
	struct worker w;
	int port = rte_eth_from_rings("full", &rx, 1, &tx, 1, 0);

	CHECK(port >= 0);
	program.device[0] = (uint16_t)port;
	CHECK_EQ(rte_eth_dev_configure(program.device[0], 1, 1, &conf), 0);
	CHECK_EQ(rte_eth_rx_queue_setup(program.device[0], 0, 32, 0, NULL, pool), 0);
	CHECK_EQ(rte_eth_tx_queue_setup(program.device[0], 0, 32, 0, NULL), 0);
	CHECK_EQ(rte_eth_dev_start(program.device[0]), 0);
	work_open(&w, &program, &counters, 0, NULL);
	hand(&w, m, 20);
	hand(&w, m, 20);
	hand(&w, m, 5);
	CHECK_EQ(counters.sent[0], ROOM);
	CHECK_EQ(counters.dropped[DROP_TX], 45 - ROOM);
	empty(tx);
}

static void test_stage(void)
{
	struct rte_ring *ring = make_ring("stage");
	struct rte_mbuf *m[BURST_MAX];
	struct worker w;

	work_open(&w, &program, &counters, 0, ring);
	hand(&w, m, 30);
	hand(&w, m, 30);
	CHECK_EQ(counters.dropped[DROP_RING], 60 - ROOM);
	empty(ring);
}

int main(int argc, char **argv)
{
	CHECK(rte_eal_init(argc, argv) >= 0);
	program.ports = 1;
	pool = rte_pktmbuf_pool_create("test", PACKETS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	CHECK(pool != NULL);
	test_port();
	test_stage();
	rte_eal_cleanup();
	return 0;
}
