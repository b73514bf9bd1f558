/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the tests. */
#include "test.h"

#include <dirent.h>
#include <pthread.h>

void test_failed(void)
{
	broker_clean_up();
	_exit(1);
}

struct dray_port *test_open(struct broker *broker, const char *name, uint32_t mode, uint32_t flags)
{
	struct dray_options options = {.size = sizeof(options),
				       .directory = broker_directory(broker),
				       .mode = mode,
				       .flags = flags,
				       .timeout_ms = 60000};
	struct dray_port *port = NULL;
	int ret = dray_open(name, &options, &port);

	if (ret)
		fprintf(stderr, "dray_open(%s): %s (%d)\n", name, dray_strerror(ret), ret);
	CHECK_EQ(ret, 0);
	return port;
}

static struct dray_info info_of(struct dray_port *port)
{
	struct dray_info info = {.size = sizeof(info)};

	CHECK_EQ(dray_info(port, &info), 0);
	return info;
}

bool test_up(struct dray_port *port)
{
	return info_of(port).state == DRAY_LINK_UP;
}

uint32_t test_generation(struct dray_port *port)
{
	return info_of(port).generation;
}

void test_service(struct dray_port *a, struct dray_port *b)
{
	CHECK(dray_service(a) >= 0);
	if (b)
		CHECK(dray_service(b) >= 0);
	usleep(200);
}

struct dray_stats test_stats(struct dray_port *port)
{
	struct dray_stats stats = {.size = sizeof(stats)};

	CHECK_EQ(dray_stats(port, DRAY_ALL_QUEUES, &stats), 0);
	return stats;
}

struct pair test_pair(const struct broker_options *options, uint32_t mode, uint32_t flags)
{
	struct pair p = {.broker = broker_start(options)};

	p.a = test_open(p.broker, "a", mode, flags);
	p.b = test_open(p.broker, "b", mode, flags);
	UNTIL(test_up(p.a) && test_up(p.b), test_service(p.a, p.b));
	return p;
}

void test_pair_close(struct pair *p)
{
	CHECK_EQ(dray_close(p->a), 0);
	CHECK_EQ(dray_close(p->b), 0);
	broker_stop(p->broker);
}

static uint8_t byte_of(uint32_t seed, uint32_t i)
{
	return (uint8_t)((seed * 2654435761u + i * 40503u) >> 13);
}

void test_fill(struct dray_pkt *pkt, uint32_t length, uint32_t seed)
{
	uint8_t *data = pkt->data;

	CHECK(length <= pkt->room);
	pkt->length = length;
	for (uint32_t i = 0; i < length; i++)
		data[i] = byte_of(seed, i);
	if (length >= sizeof(seed))
		memcpy(data, &seed, sizeof(seed));
}

void test_check(const struct dray_pkt *pkt, uint32_t length, uint32_t seed)
{
	const uint8_t *data = pkt->data;
	uint32_t first;

	CHECK_EQ(pkt->length, length);
	if (length >= sizeof(first)) {
		memcpy(&first, data, sizeof(first));
		CHECK_EQ(first, seed);
	}
	for (uint32_t i = sizeof(first); i < length; i++)
		if (data[i] != byte_of(seed, i))
			CHECK_EQ(data[i], byte_of(seed, i));
}

void test_send(struct dray_port *port, unsigned queue, uint32_t length, uint32_t seed)
{
	struct dray_pkt p;

	UNTIL(dray_tx_alloc(port, queue, &p, 1, length) == 1, test_service(port, NULL));
	test_fill(&p, length, seed);
	CHECK_EQ(dray_tx_burst(port, queue, &p, 1), 1);
}

void test_receive(struct dray_port *port, unsigned queue, uint32_t length, uint32_t seed)
{
	struct dray_pkt p;

	UNTIL(dray_rx_burst(port, queue, &p, 1) == 1, test_service(port, NULL));
	test_check(&p, length, seed);
	dray_release(&p, 1);
}

static void *release_one(void *pkt)
{
	dray_release(pkt, 1);
	return NULL;
}

void test_release_elsewhere(struct dray_pkt *pkt)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, release_one, pkt), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

unsigned test_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}
