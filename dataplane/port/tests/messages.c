/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of up to 4 MB beside packets, whole and in order; what is too long is refused. */
#include "test.h"

int main(void)
{
	struct broker_options o = {
		.geometry = {.msg_slots = 3, .msg_stride = (4u << 20) + 128, .msg_headroom = 128}};
	struct pair p = test_pair(&o, DRAY_MODE_BUSY, 0);
	struct dray_info info = {.size = sizeof(info)};
	struct dray_pkt t[4];

	CHECK_EQ(dray_info(p.a, &info), 0);
	CHECK_EQ(info.message_max, 4u << 20);
	for (uint32_t i = 0; i < 12; i++) {
		test_send(p.a, 0, 64, 3 * i);
		test_send(p.a, 0, i % 2 ? 4u << 20 : 70001 + i, 3 * i + 1);
		test_send(p.a, 0, 1500, 3 * i + 2);
		test_receive(p.b, 0, 64, 3 * i);
		test_receive(p.b, 0, i % 2 ? 4u << 20 : 70001 + i, 3 * i + 1);
		test_receive(p.b, 0, 1500, 3 * i + 2);
	}
	CHECK_EQ(dray_tx_alloc(p.a, 0, t, 1, (4u << 20) + 1), 0);
	CHECK_EQ(dray_wait(p.a, 0, DRAY_WAIT_MESSAGE, -1), DRAY_WAIT_MESSAGE);
	CHECK_EQ(dray_tx_alloc(p.a, 0, t, 4, 100000), 3);
	/* packet buffers are there, but not waited for */
	CHECK_EQ(dray_wait(p.a, 0, DRAY_WAIT_MESSAGE, 5), 0);
	CHECK_EQ(dray_wait(p.a, 0, DRAY_WAIT_MESSAGE | DRAY_WAIT_TX, -1), DRAY_WAIT_TX);
	dray_release(t, 3);
	CHECK_EQ(dray_wait(p.a, 0, DRAY_WAIT_MESSAGE, -1), DRAY_WAIT_MESSAGE);
	CHECK_EQ(test_stats(p.a).held, 0);
	CHECK_EQ(test_stats(p.a).misuse, 0);
	test_pair_close(&p);
	return 0;
}
