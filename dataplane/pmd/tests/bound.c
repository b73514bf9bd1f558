/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mbufs of the driver's own pools are sent without copying; what is bound to a generation that is
 * over is copied, and none is ever lost or sent twice.
 */
#include "rig.h"
#include "rte_pmd_dray.h"

#define MBUFS 255
#define LENGTH 600

static struct broker *broker;
static uint16_t a, b;
static struct rte_mempool *pool;

static uint64_t in_place(void)
{
	return rig_xstat(a, "tx_zero_copy_packets");
}

static void pass(uint32_t seed)
{
	struct rte_mbuf *m;

	rig_send(a, 0, rig_make(pool, LENGTH, seed));
	m = rig_receive(b, 0);
	rig_check(m, LENGTH, seed);
	rte_pktmbuf_free(m);
}

/* Every mbuf once, and again. The link has 128 buffers, of which 64 are lent to mbufs. */
static void soon_in_place(void)
{
	uint64_t before;

	for (uint32_t i = 0; i < 2 * MBUFS; i++)
		pass(i);
	before = in_place();
	CHECK(before > 0);
	for (uint32_t i = 0; i < MBUFS; i++)
		pass(i);
	CHECK_EQ(in_place() - before, 64);
	CHECK_EQ(rig_xstat(a, "held_buffers"), 64);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
}

/* All at once, so that some are bound and some are not. */
static void mixed(void)
{
	struct rte_mbuf *m[100], *r;
	uint32_t sent = 0;

	for (uint32_t i = 0; i < 100; i++)
		m[i] = rig_make(i % 5 ? pool : rig_source(), LENGTH, i);
	for (uint32_t i = 0; i < 100; i++) {
		if (sent == i)
			UNTIL((sent += rte_eth_tx_burst(a, 0, &m[sent], (uint16_t)(100 - sent))) >
				      i,
			      usleep(50));
		r = rig_receive(b, 0);
		rig_check(r, LENGTH, i);
		rte_pktmbuf_free(r);
	}
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
}

/* What somebody else has as well is copied, and stays as it was. */
static void clones(void)
{
	for (uint32_t i = 0; i < MBUFS; i++) {
		struct rte_mbuf *m = rig_make(pool, LENGTH, i),
				*clone = rte_pktmbuf_clone(m, rig_source()), *r;

		CHECK(clone != NULL);
		rig_send(a, 0, i % 2 ? m : clone);
		r = rig_receive(b, 0);
		rig_check(r, LENGTH, i);
		rte_pktmbuf_free(r);
		rig_check(i % 2 ? clone : m, LENGTH, i);
		rte_pktmbuf_free(i % 2 ? clone : m);
	}
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
}

/* An mbuf that is filled in one generation and sent in the next. */
static void next_generation(void)
{
	struct rte_mbuf *m[MBUFS], *r;
	uint64_t old = rig_xstat(a, "tx_old_generation_packets"),
		 generation = rig_xstat(a, "generation");

	for (uint32_t i = 0; i < MBUFS; i++)
		m[i] = rig_make(pool, LENGTH, i);
	rig_close(b);
	UNTIL(!rig_up(a), usleep(200));
	b = rig_open(broker, "net_dray1", "b", "");
	rig_wait_up(a, b);
	UNTIL(rig_xstat(a, "generation") > generation, usleep(200));
	for (uint32_t i = 0; i < MBUFS; i++) {
		rig_send(a, 0, m[i]);
		r = rig_receive(b, 0);
		rig_check(r, LENGTH, i);
		rte_pktmbuf_free(r);
	}
	CHECK_EQ(rig_xstat(a, "tx_old_generation_packets") - old, 64);
	UNTIL(rig_xstat(a, "mapped_generations") == 1, usleep(200));
	soon_in_place();
}

/* Mbufs that lie idle keep no generation for longer than until the next is sent to. */
static void idle_generations(void)
{
	for (uint32_t round = 0; round < 10; round++) {
		rig_close(b);
		UNTIL(!rig_up(a), usleep(200));
		b = rig_open(broker, "net_dray1", "b", "");
		rig_wait_up(a, b);
		for (uint32_t i = 0; i < 2 * MBUFS; i++)
			pass(i);
		UNTIL(rig_xstat(a, "mapped_generations") == 1, usleep(200));
	}
}

/* No peer: what is sent is dropped, and counted. */
static void no_peer(void)
{
	struct rte_mbuf *m = rig_make(pool, LENGTH, 1);
	uint64_t before = rig_xstat(a, "tx_no_link_dropped");

	rig_close(b);
	UNTIL(!rig_up(a), usleep(200));
	rig_send(a, 0, m);
	CHECK_EQ(rig_xstat(a, "tx_no_link_dropped") - before, 1);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
}

/*
 * What is received goes to memory that no other peer can read, even if the pool's mbufs were
 * bound.
 */
static void received_into(void)
{
	uint16_t c = 0;

	b = rig_probe(broker, "net_dray1", "b", "");
	rig_start(b, &(struct rig_conf){0});
	rig_wait_up(a, b);
	for (uint32_t i = 0; i < 2 * MBUFS; i++)
		pass(i);
	CHECK(rig_xstat(a, "held_buffers") > 0);
	CHECK_EQ(rte_eth_dev_stop(a), 0);
	rig_start(a, &(struct rig_conf){.pool = pool});
	for (uint32_t i = 0; i < 2 * MBUFS; i++, c++) {
		struct rte_mbuf *m;

		rig_send(b, 0, rig_make(rig_source(), LENGTH, i));
		m = rig_receive(a, 0);
		rig_check(m, LENGTH, i);
		CHECK(RTE_PTR_DIFF(m->buf_addr, m) < 4096); /* the mbuf's own */
		rte_pktmbuf_free(m);
	}
	pass(1); /* what was given up goes back with the next burst */
	CHECK(rig_xstat(a, "held_buffers") <= 1);
}

int main(void)
{
	broker = rig_begin_pair(&a, &b, ",rx=copy");
	CHECK(rte_pmd_dray_pool_create("none", RTE_MAX_ETHPORTS - 1, MBUFS, 0, 0, SOCKET_ID_ANY) ==
	      NULL);
	pool = rte_pmd_dray_pool_create("bound", a, MBUFS, 0, 0, SOCKET_ID_ANY);
	CHECK(pool != NULL);
	soon_in_place();
	mixed();
	clones();
	next_generation();
	idle_generations();
	no_peer();
	received_into();
	CHECK_EQ(rig_xstat(a, "misuse"), 0);
	CHECK_EQ(rte_eth_dev_stop(a), 0);
	rig_start(a, &(struct rig_conf){0});
	for (uint32_t i = 0; i < 2 * MBUFS; i++)
		pass(i);
	rte_mempool_free(pool); /* while the port is open */
	pool = rte_pmd_dray_pool_create("second", a, MBUFS, 0, 0, SOCKET_ID_ANY);
	for (uint32_t i = 0; i < 2 * MBUFS; i++)
		pass(i);
	rig_close(a);
	rte_mempool_free(pool); /* after it was closed */
	rig_close(b);
	rig_end_pair(broker);
	return 0;
}
