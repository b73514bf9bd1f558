/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender that keeps writing to its packets: what a function sends has passed its checks, byte by
 * byte.
 */
#include <inttypes.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_ring.h>
#include <stdatomic.h>

#include "../bench/frames.h"
#include "files.h"
#include "ip4.h"
#include "numbers.h"
#include "ringport.h"
#include "work.h"

#define PORTS 2u
#define BATCH 32u
#define PACKETS 200000u
#define ROOM 512u  /* of a buffer of the sender */
#define HEAD 128u  /* of it in front of the packet */
#define TUNNEL 58u /* bytes of a G-PDU before its inner header */

static struct rte_mempool *pool;
static struct program program;
static struct counters counters;
static struct rte_ring *sent[PORTS];
static struct worker w;
static struct frame frames[FRAMES];
static uint32_t destinations[FRAMES];

/* Memory of the sender, which the victim's mbufs refer to. */
static uint8_t memory[BATCH][ROOM];
static struct rte_mbuf_ext_shared_info shared[BATCH];

static void freed(void *address, void *context)
{
	(void)address;
	(void)context;
}

static void open_function(unsigned in, int n, const char *const *arguments)
{
	memset(&program.options, 0, sizeof(program.options));
	memset(&program.function, 0, sizeof(program.function));
	memset(&counters, 0, sizeof(counters));
	program.fib = NULL;
	program.hops = NULL;
	CHECK_EQ(options_read(n, (char **)(uintptr_t)arguments, &program.options), 0);
	program.ports = program.function.ports = PORTS;
	program.lcores = 1;
	program.pool = pool;
	for (unsigned i = 0; i < PORTS; i++) {
		options_port(&program.options, i, &program.function.port[i]);
		program.function.port[i].mtu = 1600;
	}
	CHECK_EQ(options_function(&program.options, &program.function), 0);
	if (program.options.mode == MODE_L3FWD)
		CHECK_EQ(fib_open(&program), 0);
	for (uint32_t i = 0; i < FRAMES; i++)
		destinations[i] = 0x0a000000 | i;
	frames_make(frames, &program.function, in, destinations);
	work_open(&w, &program, &counters, 0, NULL);
}

static void close_function(void)
{
	fib_close(&program);
	bng_close(&program.function.bng);
	gtpu_close(&program.function.gtpu);
}

/* A frame as net_dray lends it. */
static struct rte_mbuf *lend(unsigned i, const struct frame *frame)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	CHECK(m != NULL);
	memcpy(memory[i] + HEAD, frame->bytes, frame->length);
	shared[i].free_cb = freed;
	rte_mbuf_ext_refcnt_set(&shared[i], 1);
	rte_pktmbuf_attach_extbuf(m, memory[i], RTE_BAD_IOVA, ROOM, &shared[i]);
	m->data_off = HEAD;
	m->data_len = (uint16_t)frame->length;
	m->pkt_len = frame->length;
	return m;
}

static struct rte_mbuf *own(const struct frame *frame)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	CHECK(m != NULL);
	memcpy(rte_pktmbuf_append(m, (uint16_t)frame->length), frame->bytes, frame->length);
	return m;
}

static void pass(unsigned in, struct rte_mbuf **m, unsigned n)
{
	w.handle(&w, in, m, n);
	work_flush(&w);
}

static unsigned take(struct rte_mbuf **m)
{
	unsigned n = rte_ring_dequeue_burst(sent[0], (void **)m, BATCH, NULL);

	return n + rte_ring_dequeue_burst(sent[1], (void **)(m + n), BATCH - n, NULL);
}

/* What leaves is the same as if the sender had never touched the packet again. */
static void check_unchanged(unsigned in, int n, const char *const *arguments)
{
	open_function(in, n, arguments);
	for (unsigned at = 0; at < 256; at += BATCH) {
		struct rte_mbuf *from[BATCH], *want[BATCH], *got[BATCH];

		for (unsigned i = 0; i < BATCH; i++)
			from[i] = own(&frames[at + i]);
		pass(in, from, BATCH);
		CHECK_EQ(take(want), BATCH);
		for (unsigned i = 0; i < BATCH; i++)
			from[i] = lend(i, &frames[at + i]);
		pass(in, from, BATCH);
		memset(memory, 0xaa, sizeof(memory));
		CHECK_EQ(take(got), BATCH);
		for (unsigned i = 0; i < BATCH; i++) {
			CHECK_EQ(got[i]->pkt_len, want[i]->pkt_len);
			CHECK(memcmp(rte_pktmbuf_mtod(got[i], void *),
				     rte_pktmbuf_mtod(want[i], void *), got[i]->pkt_len) == 0);
		}
		rte_pktmbuf_free_bulk(got, BATCH);
		rte_pktmbuf_free_bulk(want, BATCH);
	}
	close_function();
}

static atomic_bool over;

/* Turn the source address into another user's and back, in all packets. */
static void *rewrite(void *arguments)
{
	(void)arguments;
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		for (unsigned i = 0; i < BATCH; i++) {
			volatile uint8_t *last = &memory[i][HEAD + TUNNEL + 12 + 3];

			*last ^= 1;
		}
	return NULL;
}

/*
 * How many of the packets have another user's address. Whose packet it is stands in its payload,
 * which this sender leaves alone.
 */
static unsigned foreign_sources(struct rte_mbuf **m, unsigned n, uint32_t first)
{
	unsigned foreign = 0;

	for (unsigned i = 0; i < n; i++) {
		const uint8_t *ip = rte_pktmbuf_mtod(m[i], const uint8_t *) + ETHERNET;
		uint32_t which = get32(ip + IP4);

		CHECK(which >= first && which < first + BATCH);
		foreign += get32(ip + 12) != get32(frames[which].bytes + TUNNEL + 12);
	}
	return foreign;
}

static void test_rewriting_sender(void)
{
	static const char *const arguments[] = {"gtpu", "--mtu", "1600"};
	uint64_t passed = 0, handled = 0, foreign = 0;
	pthread_t thread;

	open_function(0, 3, arguments);
	for (uint32_t i = 0; i < FRAMES; i++) {
		CHECK_EQ(frames[i].bytes[TUNNEL], 0x45);
		put32(frames[i].bytes + TUNNEL + IP4, i);
	}
	CHECK_EQ(pthread_create(&thread, NULL, rewrite, NULL), 0);
	/* The sender must have been fast enough to be noticed. */
	for (; handled < PACKETS || passed == 0 || passed == handled; handled += BATCH) {
		uint32_t first = handled % FRAMES;
		struct rte_mbuf *m[BATCH];
		unsigned n;

		for (unsigned i = 0; i < BATCH; i++)
			m[i] = lend(i, &frames[first + i]);
		pass(0, m, BATCH);
		n = take(m);
		foreign += foreign_sources(m, n, first);
		rte_pktmbuf_free_bulk(m, n);
		passed += n;
	}
	atomic_store(&over, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	printf("measured: %" PRIu64 " of %" PRIu64 " packets left with another user's address\n",
	       foreign, passed);
	CHECK_EQ(foreign, 0);
	close_function();
}

/* Without an mbuf for the copy, the packet is dropped. */
static void test_no_memory(void)
{
	static const char *const arguments[] = {"l2fwd"};
	struct rte_mempool *empty = rte_pktmbuf_pool_create("empty", 1, 0, 0, 256, 0);
	struct rte_mbuf *m, *taken;

	CHECK(empty != NULL);
	open_function(0, 1, arguments);
	program.pool = empty;
	taken = rte_pktmbuf_alloc(empty);
	CHECK(taken != NULL);
	m = lend(0, &frames[0]);
	pass(0, &m, 1);
	CHECK_EQ(counters.dropped[DROP_MEMORY], 1);
	rte_pktmbuf_free(taken);
	close_function();
}

int main(int argc, char **argv)
{
	CHECK(rte_eal_init(argc, argv) >= 0);
	pool = rte_pktmbuf_pool_create("test", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	CHECK(pool != NULL);
	for (unsigned i = 0; i < PORTS; i++)
		program.device[i] = ring_port(i, pool, &sent[i]);
	check_unchanged(0, 1, (const char *[]){"l2fwd"});
	check_unchanged(0, 5, (const char *[]){"l3fwd", "--generate", "1", "--default-route", "1"});
	for (unsigned in = 0; in < 2; in++) {
		check_unchanged(in, 3, (const char *[]){"bng", "--mtu", "1600"});
		check_unchanged(in, 3, (const char *[]){"gtpu", "--mtu", "1600"});
	}
	test_rewriting_sender();
	test_no_memory();
	CHECK_EQ(rte_mempool_avail_count(pool), 1023);
	rte_eal_cleanup();
	return 0;
}
