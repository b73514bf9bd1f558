/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new generation under traffic: no packet is lost, buffers of the old one are copied when they
 * are sent, the old memory goes.
 */
#include "test.h"

int main(void)
{
	struct pair p = test_pair(NULL, DRAY_MODE_BUSY, 0);
	struct dray_pkt early, late;
	uint32_t before = test_generation(p.a);
	struct dray_event e[8];

	CHECK_EQ(dray_events(p.a, e, 8), 1);
	CHECK_EQ(dray_tx_alloc(p.a, 0, &early, 1, 500), 1);
	test_fill(&early, 500, 77);
	test_send(p.a, 0, 100, 1);
	broker_move_shm(p.broker);
	UNTIL(test_generation(p.a) > before && test_generation(p.b) > before,
	      test_service(p.a, p.b));
	CHECK_EQ(dray_events(p.a, e, 8), 1);
	CHECK_EQ(e[0].type, DRAY_EVENT_REBIND);
	test_send(p.a, 0, 100, 2);
	CHECK_EQ(dray_tx_burst(p.a, 0, &early, 1), 1);
	CHECK_EQ(test_stats(p.a).tx_copied, 1);
	test_receive(p.b, 0, 100, 1); /* from the old one */
	test_receive(p.b, 0, 100, 2);
	test_receive(p.b, 0, 500, 77);
	UNTIL(test_stats(p.a).maps == 1 && test_stats(p.b).maps == 1, {
		CHECK_EQ(dray_rx_burst(p.a, 0, &late, 1), 0);
		CHECK_EQ(dray_rx_burst(p.b, 0, &late, 1), 0);
		test_service(p.a, p.b);
	});
	CHECK_EQ(test_stats(p.a).held, 0);
	CHECK_EQ(test_stats(p.b).misuse, 0);
	test_pair_close(&p);
	return 0;
}
