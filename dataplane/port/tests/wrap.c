/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices run over 2^32 in the middle of bursts of every size, and nothing is lost, doubled or
 * counted as a violation.
 */
#include "memory.h"
#include "test.h"

static void run(uint32_t start)
{
	struct bed b = bed_make(start, 0, FEATURES_KNOWN);
	struct dray_owner *tx = &b.tx->owner, *rx = &b.rx->owner;
	struct dray_pkt p[64];
	uint32_t sent = 0, got = 0;

	for (unsigned round = 0; round < 400; round++) {
		unsigned n = tx->ops->alloc(tx, p, 1 + round % 40, 64);

		for (unsigned i = 0; i < n; i++)
			test_fill(&p[i], 64, sent + i);
		CHECK_EQ(tx->ops->send(tx, p, n), n);
		sent += n;
		n = rx->ops->recv(rx, p, 1 + round * 7 % 33);
		for (unsigned i = 0; i < n; i++)
			test_check(&p[i], 64, got + i);
		got += n;
		dray_release(p, n);
	}
	while (got < sent) {
		unsigned n = rx->ops->recv(rx, p, 1);

		CHECK_EQ(n, 1);
		test_check(p, 64, got++);
		dray_release(p, 1);
	}
	CHECK(sent > 1000);
	CHECK_EQ(tx->ops->alloc(tx, p, 64, 64), 48);
	for (unsigned k = 0; k < DRAY_VIOLATIONS; k++) {
		CHECK_EQ(bed_violations(b.tx_counters, k), 0);
		CHECK_EQ(bed_violations(b.rx_counters, k), 0);
	}
	bed_free(&b);
}

int main(void)
{
	run(0);
	run(UINT32_MAX);
	for (uint32_t i = 1; i < 130; i += 7)
		run(0u - i);
	run(0x7fffffc0u);
	return 0;
}
