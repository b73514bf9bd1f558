/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dray-pmd-cost: CPU time of a frame, both ends and the application together on one core, so that other work on the machine and the distance of
 * cores do not matter. A line of JSON for each case, with the ns of each trial.
 */
#include <time.h>

#include "rig.h"
#include "rte_pmd_dray.h"

#define FRAMES 32000
#define TRIALS 15
#define BURST 32

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* As testpmd does in txonly and rxonly: make frames and send them; receive and free them. */
static void pass(uint16_t from, uint16_t to, struct rte_mempool *pool, uint16_t size)
{
	struct rte_mbuf *m[BURST];
	uint16_t sent, got;

	CHECK_EQ(rte_mempool_get_bulk(pool, (void **)m, BURST), 0);
	for (unsigned int i = 0; i < BURST; i++) {
		rte_pktmbuf_reset_headroom(m[i]);
		m[i]->pkt_len = m[i]->data_len = size;
		m[i]->nb_segs = 1;
		m[i]->ol_flags &= RTE_MBUF_F_EXTERNAL;
		memset(rte_pktmbuf_mtod(m[i], void *), 0, 42);
	}
	sent = rte_eth_tx_burst(from, 0, m, BURST);
	CHECK_EQ(sent, BURST);
	got = rte_eth_rx_burst(to, 0, m, BURST);
	CHECK_EQ(got, BURST);
	for (unsigned int i = 0; i < got; i++)
		rte_pktmbuf_free(m[i]);
}

static void measure(const char *name, uint16_t from, uint16_t to, struct rte_mempool *pool, uint16_t size)
{
	printf("{\"case\": \"%s\", \"size\": %u, \"unit\": \"ns\", \"values\": [", name, size);
	for (unsigned int i = 0; i < TRIALS; i++) {
		double start = cpu_ns();

		for (unsigned int k = 0; k < FRAMES / BURST; k++)
			pass(from, to, pool, size);
		printf("%s%.2f", i ? "," : "", (cpu_ns() - start) / FRAMES);
	}
	printf("]}\n");
}

/* All sizes, with a receiver of these device arguments. */
static void measure_all(const char *name, struct broker *broker, const char *arguments, bool bound)
{
	static const uint16_t sizes[] = {64, 128, 256, 512, 1024, 1518};
	uint16_t a = rig_open(broker, "net_dray0", "a", ""), b = rig_open(broker, "net_dray1", "b", arguments);
	struct rte_mempool *pool = bound ? rte_pmd_dray_pool_create("bound", a, 1023, 250, 0, SOCKET_ID_ANY)
					 : rte_pktmbuf_pool_create("any", 1023, 250, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	CHECK(pool != NULL);
	rig_wait_up(a, b);
	for (unsigned int i = 0; i < RTE_DIM(sizes); i++)
		measure(name, a, b, pool, sizes[i]);
	rig_close(a);
	rig_close(b);
	rte_mempool_free(pool);
}

int main(void)
{
	/* As a chain's broker makes a link by default. */
	struct broker_options options = {.geometry = {.ring_size = 512, .pkt_slots = 512}};
	struct broker *broker = broker_start(&options);

	rig_cache = 250; /* as testpmd has it */
	rig_begin();
	measure_all("received by copying", broker, ",rx=copy", false);
	measure_all("received in place", broker, ",rx-copy-max=0", false);
	measure_all("received in place, sent from the driver's own pool", broker, ",rx-copy-max=0", true);
	broker_stop(broker);
	rig_end();
	return 0;
}
