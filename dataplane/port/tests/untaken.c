/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that send and leave, one after another, to an end that does not receive: it keeps the
 * packets of the last of them, and no more memory than that.
 */
#include "test.h"

#define PEERS 10
#define KEPT 4

/* Of memory that the test's broker made: generations, and one for telemetry. */
static unsigned mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "memfd:dray-link") != NULL;
	fclose(maps);
	return n;
}

int main(void)
{
	struct broker *broker = broker_start(NULL);
	struct dray_port *a = test_open(broker, "a", DRAY_MODE_BUSY, 0);

	for (uint32_t peer = 0; peer < PEERS; peer++) {
		struct dray_port *b = test_open(broker, "b", DRAY_MODE_BUSY, 0);

		UNTIL(test_up(a) && test_up(b), test_service(a, b));
		test_send(b, 0, 64, peer);
		CHECK_EQ(dray_close(b), 0);
		UNTIL(!test_up(a), test_service(a, NULL));
	}
	UNTIL(mappings() <= KEPT + 1, test_service(a, NULL));
	for (uint32_t peer = PEERS - KEPT; peer < PEERS; peer++)
		test_receive(a, 0, 64, peer);
	UNTIL(mappings() <= 1, {
		struct dray_pkt more;

		CHECK_EQ(dray_rx_burst(a, 0, &more, 1), 0);
		test_service(a, NULL);
	});
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
	return 0;
}
