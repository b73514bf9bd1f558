/* SPDX-License-Identifier: Apache-2.0 */
/* The broker dies: traffic goes on. It starts again: the link is adopted as it is. It starts
 * without its journal: there is a new generation, and nothing is lost. An end leaves while there is
 * no broker: the other notices. */
#include <signal.h>
#include <sys/wait.h>

#include "test.h"

static void traffic(struct dray_port *a, struct dray_port *b, uint32_t *next)
{
	for (unsigned i = 0; i < 500; i++, (*next)++) {
		test_send(a, 0, 300, *next);
		test_receive(b, 0, 300, *next);
		test_send(b, 0, 64, *next);
		test_receive(a, 0, 64, *next);
	}
}

static bool connected(struct dray_port *port)
{
	struct dray_info info = {.size = sizeof(info)};

	CHECK_EQ(dray_info(port, &info), 0);
	return info.broker;
}

static void kill_broker(struct broker *broker, struct dray_port *a, struct dray_port *b)
{
	kill(broker_pid(broker), SIGKILL);
	UNTIL(!connected(a) && !connected(b), test_service(a, b));
}

int main(void)
{
	char directory[] = "/tmp/dray-test-XXXXXX", journal[64];
	struct broker_options o = {.directory = mkdtemp(directory)};
	struct broker *first = broker_fork(&o), *second, *third;
	struct dray_port *a = test_open(first, "a", DRAY_MODE_BUSY, 0),
			 *b = test_open(first, "b", DRAY_MODE_BUSY, 0);
	uint32_t next = 0, generation;

	UNTIL(test_up(a) && test_up(b), test_service(a, b));
	generation = test_generation(a);
	traffic(a, b, &next);
	kill_broker(first, a, b);
	traffic(a, b, &next);
	broker_stop(first);

	second = broker_fork(&o);
	UNTIL(connected(a) && connected(b), test_service(a, b));
	traffic(a, b, &next);
	CHECK_EQ(test_generation(a), generation);
	kill_broker(second, a, b);
	broker_stop(second);

	snprintf(journal, sizeof(journal), "%s/journal", directory);
	CHECK_EQ(unlink(journal), 0);
	traffic(a, b, &next);
	third = broker_fork(&o);
	UNTIL(test_generation(a) > generation && test_generation(b) > generation,
	      test_service(a, b));
	traffic(a, b, &next);
	kill_broker(third, a, b);
	broker_stop(third);
	CHECK_EQ(unlink(journal), 0);
	traffic(a, b, &next);
	CHECK_EQ(dray_close(b), 0);
	UNTIL(!test_up(a), test_service(a, NULL)); /* the bells say so: there is no broker */
	CHECK_EQ(dray_close(a), 0);
	for (unsigned i = 0; i < 2; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/%s", directory, i ? "b" : "a");
		unlink(path);
	}
	CHECK_EQ(rmdir(directory), 0);
	return 0;
}
