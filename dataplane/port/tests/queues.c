/* SPDX-License-Identifier: Apache-2.0 */
/* Several queues: each keeps its own packets; an end that asks for fewer gets a link with fewer. */
#include "test.h"

static void all_four(void)
{
	struct broker_options o = {.queues = 4};
	struct pair p = test_pair(&o, DRAY_MODE_BUSY, 0);
	struct dray_info info = {.size = sizeof(info)};
	struct dray_pkt none;

	CHECK_EQ(dray_info(p.a, &info), 0);
	CHECK_EQ(info.queues, 4);
	CHECK_EQ(info.queues_in_use, 4);
	for (uint32_t round = 0; round < 100; round++)
		for (unsigned q = 0; q < 4; q++) {
			test_send(p.a, q, 100 + q, round * 4 + q);
			test_send(p.b, q, 200 + q, round * 4 + q);
		}
	for (unsigned q = 4; q-- > 0;) {
		struct dray_stats s = {.size = sizeof(s)};

		for (uint32_t round = 0; round < 100; round++) {
			test_receive(p.b, q, 100 + q, round * 4 + q);
			test_receive(p.a, q, 200 + q, round * 4 + q);
		}
		CHECK_EQ(dray_stats(p.b, q, &s), 0);
		CHECK_EQ(s.rx_packets, 100);
	}
	CHECK_EQ(dray_rx_burst(p.a, 4, &none, 1), 0);
	CHECK_EQ(dray_tx_alloc(p.a, 99, &none, 1, 64), 0);
	test_pair_close(&p);
}

static void one_of_four(void)
{
	struct broker_options o = {.queues = 4};
	struct broker *broker = broker_start(&o);
	struct dray_options fewer = {.size = sizeof(fewer),
				     .directory = broker_directory(broker),
				     .queues = 1,
				     .flags = DRAY_SERVICE_THREAD};
	struct dray_info info = {.size = sizeof(info)};
	struct dray_port *a, *b = test_open(broker, "b", DRAY_MODE_BUSY, DRAY_SERVICE_THREAD);
	struct dray_pkt none;

	CHECK_EQ(dray_open("a", &fewer, &a), 0);
	UNTIL(test_up(a) && test_up(b), usleep(1000));
	CHECK_EQ(dray_info(b, &info), 0);
	CHECK_EQ(info.queues, 4);
	CHECK_EQ(info.queues_in_use, 1);
	CHECK_EQ(dray_tx_alloc(b, 1, &none, 1, 64), 0);
	test_send(b, 0, 64, 1);
	test_receive(a, 0, 64, 1);
	CHECK_EQ(dray_close(b), 0);
	UNTIL(!test_up(a), usleep(1000)); /* the library's thread notices */
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
}

int main(void)
{
	all_four();
	one_of_four();
	return 0;
}
