/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that keeps every buffer, and reads nothing: the victim's calls return at once, it is
 * counted, and reported to the application.
 */
#include "rawend.h"
#include "test.h"

#include <pthread.h>

static struct rawend peer;

static void *join(void *directory)
{
	peer = rawend_join(directory, "b");
	return NULL;
}

int main(void)
{
	struct broker *broker = broker_start(NULL);
	struct dray_port *a = test_open(broker, "a", DRAY_MODE_SLEEPING, 0);
	struct dray_event e[64];
	bool reported = false;
	pthread_t thread;
	struct dray_pkt p;
	unsigned sent = 0;

	CHECK_EQ(pthread_create(&thread, NULL, join, (void *)broker_directory(broker)), 0);
	UNTIL(test_up(a), test_service(a, NULL));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	while (dray_tx_alloc(a, 0, &p, 1, 64)) {
		p.length = 64;
		CHECK_EQ(dray_tx_burst(a, 0, &p, 1), 1);
		sent++;
	}
	CHECK_EQ(sent, 128);
	CHECK_EQ(dray_wait(a, 0, DRAY_WAIT_TX, 30), 0);
	UNTIL(reported, {
		int n;

		CHECK_EQ(dray_tx_alloc(a, 0, &p, 1, 64), 0);
		test_service(a, NULL);
		n = dray_events(a, e, 64);
		for (int i = 0; i < n; i++)
			reported |= e[i].type == DRAY_EVENT_PEER_HOLDS;
	});
	CHECK_EQ(test_stats(a).violations[DRAY_BAD_HOLD], 1);
	CHECK_EQ(dray_close(a), 0);
	rawend_leave(&peer);
	broker_stop(broker);
	return 0;
}
