/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application that keeps buffers over the quota: policy drop drops, policy copy copies, and the
 * peer never runs dry.
 */
#include "test.h"

#define QUOTA 16
#define PACKETS 400

static void run(uint32_t policy)
{
	struct broker_options o = {.hold_quota = QUOTA, .hold_policy = policy};
	struct pair p = test_pair(&o, DRAY_MODE_BUSY, 0);
	static struct dray_pkt kept[PACKETS];
	unsigned n = 0, expected = policy == HOLD_COPY ? PACKETS : QUOTA;

	for (uint32_t i = 0; i < PACKETS; i++) {
		struct dray_pkt t;

		/* the sender is never short of buffers */
		CHECK_EQ(dray_tx_alloc(p.a, 0, &t, 1, 64), 1);
		test_fill(&t, 64, i);
		CHECK_EQ(dray_tx_burst(p.a, 0, &t, 1), 1);
		n += dray_rx_burst(p.b, 0, &kept[n], 1);
	}
	CHECK_EQ(n, expected);
	for (unsigned i = 0; i < n; i++)
		test_check(&kept[i], 64, i);
	CHECK_EQ(test_stats(p.b).held, expected);
	CHECK_EQ(test_stats(p.b).rx_dropped, PACKETS - expected);
	CHECK_EQ(test_stats(p.b).rx_copied, expected - QUOTA);
	CHECK_EQ(test_stats(p.a).tx_no_buffer, 0);
	dray_release(kept, n);
	test_send(p.a, 0, 64, 9);
	test_receive(p.b, 0, 64, 9);
	CHECK_EQ(test_stats(p.b).held, 0);
	test_pair_close(&p);
}

int main(void)
{
	run(HOLD_DROP);
	run(HOLD_COPY);
	return 0;
}
