/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dray-pmd-trips: round trips of one frame between two applications that do nothing else, so that what is measured is the drivers'. On the first ethdev, after
 * EAL's arguments: reflect, or ping BYTES, which prints the median of each TRIPS of them in ns as a line of JSON.
 */
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIPS 10000
#define LOST_S 1 /* a frame that is not back by then does not come */

static struct rte_mempool *pool;
static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static int open_port(void)
{
	struct rte_eth_conf conf = {0};

	pool = rte_pktmbuf_pool_create("trips", 4095, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (!pool || rte_eth_dev_count_avail() == 0 || rte_eth_dev_configure(0, 1, 1, &conf) < 0 ||
	    rte_eth_rx_queue_setup(0, 0, 512, SOCKET_ID_ANY, NULL, pool) < 0 || rte_eth_tx_queue_setup(0, 0, 512, SOCKET_ID_ANY, NULL) < 0)
		return -1;
	return rte_eth_dev_start(0);
}

static void reflect(void)
{
	struct rte_mbuf *m[32];

	while (!stopped) {
		uint16_t got = rte_eth_rx_burst(0, 0, m, 32), sent = rte_eth_tx_burst(0, 0, m, got);

		rte_pktmbuf_free_bulk(&m[sent], got - sent);
	}
}

/* Ticks of one round trip; 0: it was lost. */
static uint64_t trip(uint16_t size)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *back[32];
	uint64_t began = rte_rdtsc(), end = began + LOST_S * rte_get_tsc_hz();
	char *data = m ? rte_pktmbuf_append(m, size) : NULL;
	uint16_t got;

	if (!data)
		return 0;
	memset(data, 0, 14);
	memcpy(data + 14, &began, sizeof(began));
	if (rte_eth_tx_burst(0, 0, &m, 1) == 0) {
		rte_pktmbuf_free(m);
		return 0;
	}
	do {
		uint64_t stamp, now;
		bool mine = false;

		got = rte_eth_rx_burst(0, 0, back, 32);
		for (uint16_t i = 0; i < got; i++) {
			memcpy(&stamp, rte_pktmbuf_mtod(back[i], char *) + 14, sizeof(stamp));
			mine |= stamp == began; /* others were thought to be lost */
		}
		now = rte_rdtsc();
		rte_pktmbuf_free_bulk(back, got);
		if (mine)
			return now - began;
		if (now > end)
			return 0;
	} while (!stopped);
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void ping(uint16_t size)
{
	static uint64_t ticks[TRIPS];
	unsigned n = 0;

	while (!stopped) {
		ticks[n] = trip(size);
		n += ticks[n] != 0;
		if (n < TRIPS)
			continue;
		qsort(ticks, n, sizeof(*ticks), compare);
		printf("{\"case\": \"round-trip-p50\", \"size\": %u, \"unit\": \"ns\", \"values\": [%.1f]}\n", size, (double)ticks[n / 2] * 1e9 / (double)rte_get_tsc_hz());
		fflush(stdout);
		n = 0;
	}
}

int main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv), ret = -1;

	if (used < 0)
		return 1;
	argc -= used + 1;
	argv += used + 1;
	signal(SIGTERM, stop);
	if (argc < 1 || open_port() < 0) {
		fprintf(stderr, "dray-pmd-trips: usage: dray-pmd-trips EAL-ARGUMENTS -- reflect | ping BYTES; with one device that starts\n");
	} else {
		printf("ready\n");
		fflush(stdout);
		if (strcmp(argv[0], "reflect") == 0)
			reflect();
		else
			ping(argc > 1 ? (uint16_t)atoi(argv[1]) : 64);
		rte_eth_dev_stop(0);
		ret = 0;
	}
	rte_eal_cleanup();
	return ret < 0;
}
