/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DRAY_RX_COPY: what is delivered is not in shared memory, so its sender cannot change it any more.
 */
#include "test.h"

int main(void)
{
	struct broker_options o = {
		.geometry = {.msg_slots = 2, .msg_stride = 128 + 65536, .msg_headroom = 128}};
	struct pair p = test_pair(&o, DRAY_MODE_BUSY, DRAY_RX_COPY);
	struct dray_pkt t, r[2];

	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(dray_tx_alloc(p.a, 0, &t, 1, i ? 60000 : 400), 1);
		test_fill(&t, i ? 60000 : 400, 5 + i);
		t.meta = 3 + i;
		CHECK_EQ(dray_tx_burst(p.a, 0, &t, 1), 1);
		CHECK_EQ(dray_rx_burst(p.b, 0, &r[i], 1), 1);
		memset(t.data, 0xff, i ? 60000 : 400); /* t still points to the shared slot */
		test_check(&r[i], i ? 60000 : 400, 5 + i);
		CHECK_EQ(r[i].meta, 3 + i);
	}
	CHECK_EQ(test_stats(p.b).rx_copied, 2);
	/* The slots are back although the copies are not. */
	for (uint32_t i = 0; i < 500; i++) {
		struct dray_pkt copy;

		test_send(p.a, 0, 64, i);
		CHECK_EQ(dray_rx_burst(p.b, 0, &copy, 1), 1);
		test_check(&copy, 64, i);
		dray_release(&copy, 1);
	}
	dray_release(r, 2);
	CHECK_EQ(test_stats(p.b).held, 0);
	test_pair_close(&p);
	return 0;
}
