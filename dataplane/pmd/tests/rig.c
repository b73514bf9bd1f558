/* SPDX-License-Identifier: Apache-2.0 */
/* Devices for tests. */
#include "rig.h"

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>

#include "clock.h"

static struct rte_mempool *pools[RTE_MAX_ETHPORTS], *source;

unsigned int rig_cache;

void rig_begin(void)
{
	char *arguments[] = {
		(char *)"test", (char *)"--no-huge",   (char *)"--no-shconf",	 (char *)"-m",
		(char *)"64",	(char *)"--no-pci",    (char *)"--no-telemetry", (char *)"--lcores",
		NULL,		(char *)"--log-level", (char *)"lib.eal:error",	 NULL};
	char lcores[4096] = "0@(";
	cpu_set_t set;
	size_t n = strlen(lcores);

	/* One lcore, on every CPU that the process may use. */
	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && n < sizeof(lcores) - 16)
			n += (size_t)snprintf(lcores + n, sizeof(lcores) - n, "%s%d",
					      lcores[n - 1] == '(' ? "" : ",", cpu);
	lcores[n] = ')';
	arguments[8] = lcores;
	if (rte_eal_init((int)RTE_DIM(arguments) - 1, arguments) < 0) {
		fprintf(stderr, "EAL: %s\n", rte_strerror(rte_errno));
		test_failed();
	}
	source = rte_pktmbuf_pool_create("source", RIG_MBUFS, rig_cache, 0,
					 RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	CHECK(source != NULL);
}

void rig_end(void)
{
	CHECK_EQ(rte_mempool_avail_count(source), RIG_MBUFS);
	for (unsigned int i = 0; i < RTE_MAX_ETHPORTS; i++)
		if (pools[i])
			CHECK_EQ(rte_mempool_avail_count(pools[i]), RIG_MBUFS);
	CHECK_EQ(rte_eal_cleanup(), 0);
}

struct rte_mempool *rig_source(void)
{
	return source;
}

struct rte_mempool *rig_pool(uint16_t id)
{
	char name[32];

	if (!pools[id]) {
		snprintf(name, sizeof(name), "received%u", id);
		pools[id] = rte_pktmbuf_pool_create(name, RIG_MBUFS, rig_cache, 0,
						    RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
		CHECK(pools[id] != NULL);
	}
	return pools[id];
}

uint16_t rig_probe(struct broker *broker, const char *device, const char *port, const char *more)
{
	char arguments[256];
	uint16_t id;

	snprintf(arguments, sizeof(arguments), "port=%s,dir=%s%s", port, broker_directory(broker),
		 more);
	CHECK_EQ(rte_vdev_init(device, arguments), 0);
	CHECK_EQ(rte_eth_dev_get_port_by_name(device, &id), 0);
	return id;
}

void rig_refuse(const char *device, const char *const *wrong, unsigned int n)
{
	rte_log_set_global_level(RTE_LOG_CRIT); /* each of them says why */
	for (unsigned int i = 0; i < n; i++)
		CHECK(rte_vdev_init(device, wrong[i]) < 0);
	rte_log_set_global_level(RTE_LOG_NOTICE);
	CHECK_EQ(rte_eth_dev_count_avail(), 0);
}

int rig_try_start(uint16_t id, const struct rig_conf *conf)
{
	struct rte_eth_conf c = {
		.rxmode.offloads = conf->rx_offloads,
		.txmode.offloads = conf->tx_offloads,
		.intr_conf = {.lsc = conf->lsc, .rxq = conf->rx_interrupts},
	};
	uint16_t rx = conf->rx_queues ? conf->rx_queues : 1,
		 tx = conf->tx_queues ? conf->tx_queues : 1;
	int ret = rte_eth_dev_configure(id, rx, tx, &c);

	for (uint16_t i = 0; ret == 0 && i < rx; i++)
		ret = rte_eth_rx_queue_setup(id, i, 256, SOCKET_ID_ANY, NULL,
					     conf->pool ? conf->pool : rig_pool(id));
	for (uint16_t i = 0; ret == 0 && i < tx; i++)
		ret = rte_eth_tx_queue_setup(id, i, 256, SOCKET_ID_ANY, NULL);
	return ret ? ret : rte_eth_dev_start(id);
}

void rig_start(uint16_t id, const struct rig_conf *conf)
{
	CHECK_EQ(rig_try_start(id, conf), 0);
}

uint16_t rig_open(struct broker *broker, const char *device, const char *port, const char *more)
{
	uint16_t id = rig_probe(broker, device, port, more);

	rig_start(id, &(struct rig_conf){0});
	return id;
}

struct broker *rig_begin_pair(uint16_t *a, uint16_t *b, const char *more_of_b)
{
	struct broker *broker = broker_start(NULL);

	rig_begin();
	*a = rig_open(broker, "net_dray0", "a", "");
	*b = rig_open(broker, "net_dray1", "b", more_of_b);
	rig_wait_up(*a, *b);
	return broker;
}

void rig_end_pair(struct broker *broker)
{
	broker_stop(broker);
	rig_end();
}

void rig_close(uint16_t id)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	CHECK_EQ(rte_eth_dev_get_name_by_port(id, name), 0);
	CHECK_EQ(rte_eth_dev_stop(id), 0);
	CHECK_EQ(rte_eth_dev_close(id), 0);
	CHECK_EQ(rte_vdev_uninit(name), 0);
}

bool rig_up(uint16_t id)
{
	struct rte_eth_link link;

	CHECK_EQ(rte_eth_link_get_nowait(id, &link), 0);
	return link.link_status == RTE_ETH_LINK_UP;
}

void rig_wait_up(uint16_t id, uint16_t other)
{
	UNTIL(rig_up(id) && rig_up(other), usleep(200));
}

uint64_t rig_xstat(uint16_t id, const char *name)
{
	uint64_t which, value;

	CHECK_EQ(rte_eth_xstats_get_id_by_name(id, name, &which), 0);
	CHECK_EQ(rte_eth_xstats_get_by_id(id, &which, &value, 1), 1);
	return value;
}

static uint8_t byte_of(uint32_t seed, uint32_t i)
{
	return (uint8_t)((seed * 2654435761u + i * 40503u) >> 13);
}

struct rte_mbuf *rig_make(struct rte_mempool *pool, uint32_t length, uint32_t seed)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *data;

	CHECK(m != NULL);
	data = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)length);
	CHECK(data != NULL);
	for (uint32_t i = 0; i < length; i++)
		data[i] = byte_of(seed, i);
	return m;
}

void rig_check(const struct rte_mbuf *m, uint32_t length, uint32_t seed)
{
	uint32_t i = 0;

	CHECK_EQ(m->pkt_len, length);
	CHECK_EQ(rte_mbuf_check(m, 1, &(const char *){NULL}), 0);
	for (const struct rte_mbuf *s = m; s; s = s->next)
		for (uint32_t k = 0; k < s->data_len; k++, i++)
			if (rte_pktmbuf_mtod(s, const uint8_t *)[k] != byte_of(seed, i))
				CHECK_EQ(rte_pktmbuf_mtod(s, const uint8_t *)[k], byte_of(seed, i));
	CHECK_EQ(i, length);
}

void rig_send(uint16_t id, uint16_t queue, struct rte_mbuf *m)
{
	UNTIL(rte_eth_tx_burst(id, queue, &m, 1) == 1, usleep(50));
}

struct rte_mbuf *rig_receive(uint16_t id, uint16_t queue)
{
	struct rte_mbuf *m;

	UNTIL(rte_eth_rx_burst(id, queue, &m, 1) == 1, usleep(50));
	return m;
}

void rig_pass(uint16_t from, uint16_t to, uint32_t length, uint32_t seed)
{
	struct rte_mbuf *m;

	rig_send(from, 0, rig_make(source, length, seed));
	m = rig_receive(to, 0);
	rig_check(m, length, seed);
	rte_pktmbuf_free(m);
}
