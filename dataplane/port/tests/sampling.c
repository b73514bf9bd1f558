/* SPDX-License-Identifier: Apache-2.0 */
/* A slow sender's packets are stamped more often than one in 2^shift: a percentile takes a number
 * of samples. */
#include "test.h"

#define PACKETS 500
#define APART_US 2000 /* as subframes of a radio */

int main(void)
{
	struct broker_options o = {.sample_shift = 6};
	struct pair p = test_pair(&o, DRAY_MODE_BUSY, 0);
	uint64_t stamps;

	for (uint32_t i = 0; i < PACKETS; i++) {
		test_send(p.a, 0, 100, i);
		test_receive(p.b, 0, 100, i);
		usleep(APART_US);
		test_service(p.a, p.b);
	}
	stamps = test_stats(p.b).stamps;
	if (stamps < PACKETS / 2)
		fprintf(stderr, "%llu of %d packets in a second are stamped\n",
			(unsigned long long)stamps, PACKETS);
	CHECK(stamps >= PACKETS / 2);
	CHECK_EQ(dray_close(p.b), 0);
	CHECK_EQ(dray_close(p.a), 0);
	broker_stop(p.broker);
	return 0;
}
