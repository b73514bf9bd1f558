/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of the peer under load in both directions: the link goes down and comes back with a new
 * generation, the application is notified each time, and no mbuf is lost.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "rig.h"
#include "rte_pmd_dray.h"

#define ROUNDS 12
#define LONG 800
#define MBUFS 255
#define KEPT 16

static struct broker *broker;
static unsigned int notified;

/*
 * The peer: without DPDK, as an application of libdray. It publishes without end, and takes all
 * that comes.
 */
static void live(void)
{
	struct dray_port *port = test_open(broker, "b", DRAY_MODE_BUSY, 0);
	uint32_t next = 0;

	UNTIL(test_up(port), test_service(port, NULL));
	for (;;) {
		struct dray_pkt p[8];
		unsigned int n = dray_tx_alloc(port, 0, p, 8, LONG);

		for (unsigned int i = 0; i < n; i++)
			test_fill(&p[i], LONG, next + i);
		next += dray_tx_burst(port, 0, p, n);
		dray_release(p, dray_rx_burst(port, 0, p, 8));
		dray_service(port);
	}
}

static pid_t start_peer(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		live();
	}
	return pid;
}

static void check(const struct rte_mbuf *m, uint32_t seed)
{
	const struct dray_pkt p = {.data = rte_pktmbuf_mtod(m, void *), .length = m->pkt_len};

	test_check(&p, LONG, seed);
}

/* Receive what there is, and check that nothing is missing. */
static uint32_t receive(uint16_t a, uint32_t next)
{
	struct rte_mbuf *m[32];
	uint16_t n;

	while ((n = rte_eth_rx_burst(a, 0, m, 32)) > 0)
		for (uint16_t i = 0; i < n; i++) {
			check(m[i], next++);
			rte_pktmbuf_free(m[i]);
		}
	return next;
}

static void send_some(uint16_t a, struct rte_mempool *pool)
{
	struct rte_mbuf *m[8];
	uint16_t sent;

	if (rte_pktmbuf_alloc_bulk(pool, m, 8))
		return;
	for (unsigned int i = 0; i < 8; i++)
		rte_pktmbuf_append(m[i], 100);
	sent = rte_eth_tx_burst(a, 0, m, 8);
	rte_pktmbuf_free_bulk(&m[sent], 8u - sent);
}

static void round_of(uint16_t a, struct rte_mempool *pool, uint64_t *generation)
{
	struct rte_mbuf *kept[KEPT];
	uint64_t in_place = rig_xstat(a, "tx_zero_copy_packets");
	uint32_t next = 0, first;
	pid_t pid = start_peer();

	UNTIL(rig_up(a) && rig_xstat(a, "generation") > *generation, usleep(200));
	*generation = rig_xstat(a, "generation");
	/*
	 * An mbuf is bound when it is sent first, and sent in place once the whole pool went round.
	 */
	UNTIL(next > 1000 && rig_xstat(a, "tx_zero_copy_packets") > in_place, {
		next = receive(a, next);
		send_some(a, pool);
	});
	first = next;
	for (unsigned int i = 0; i < KEPT; i++)
		kept[i] = rig_receive(a, 0);
	next += KEPT;
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	UNTIL(!rig_up(a), {
		send_some(a, pool);
		next = receive(a, next);
	});
	next = receive(a, next);
	for (unsigned int i = 0; i < KEPT; i++) {
		check(kept[i], first + i);
		rte_pktmbuf_free(kept[i]);
	}
	CHECK_EQ(rte_mempool_avail_count(rig_pool(a)), RIG_MBUFS);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
}

static int on_link_change(uint16_t id, enum rte_eth_event_type type, void *argument, void *result)
{
	(void)id, (void)argument, (void)result;
	CHECK_EQ(type, RTE_ETH_EVENT_INTR_LSC);
	__atomic_fetch_add(&notified, 1, __ATOMIC_RELAXED);
	return 0;
}

int main(void)
{
	uint64_t generation = 0;
	struct rte_mempool *pool;
	struct rte_mbuf *none;
	uint16_t a;

	broker = broker_fork(NULL);
	rig_begin();
	a = rig_probe(broker, "net_dray0", "a", "");
	CHECK_EQ(rte_eth_dev_callback_register(a, RTE_ETH_EVENT_INTR_LSC, on_link_change, NULL), 0);
	rig_start(a, &(struct rig_conf){.lsc = true});
	pool = rte_pmd_dray_pool_create("bound", a, MBUFS, 0, 0, SOCKET_ID_ANY);
	CHECK(pool != NULL);
	for (unsigned int i = 0; i < ROUNDS; i++)
		round_of(a, pool, &generation);
	UNTIL(__atomic_load_n(&notified, __ATOMIC_RELAXED) == 2 * ROUNDS, usleep(200));
	CHECK_EQ(rig_xstat(a, "link_ups"), ROUNDS);
	CHECK_EQ(rig_xstat(a, "link_downs"), ROUNDS);
	CHECK_EQ(rig_xstat(a, "misuse"), 0);
	rte_mempool_free(pool);
	/* What was bound to the last generation is given up with it. */
	UNTIL(rig_xstat(a, "mapped_generations") == 0, {
		none = rig_make(rig_source(), 60, 0);
		rig_send(a, 0, none);
		CHECK_EQ(rte_eth_rx_burst(a, 0, &none, 1), 0);
	});
	CHECK_EQ(rig_xstat(a, "held_buffers"), 0);
	rig_close(a);
	broker_stop(broker);
	rig_end();
	return 0;
}
