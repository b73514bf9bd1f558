/* SPDX-License-Identifier: Apache-2.0 */
/* Unmodified testpmd on either side of a link, told by its own command line what to do. */
#include <stdio.h>
#include <unistd.h>

#include "pairs.h"

#define PROMPT "testpmd> "
#define SETTLE_US 50000
#define SHOW "show port stats 0\n"

static struct process start(const struct place *place, const struct pair *pair, int side, const char *device, int dray, const char *mode, const char *more)
{
	struct command c = {.cpu = -1};

	/* By lines: else its answers would stay in a buffer. */
	command_add(&c, "stdbuf -oL dpdk-testpmd");
	pair_eal(place, pair, side, device, dray, &c);
	command_add(&c, "-- --interactive --auto-start --forward-mode=%s --total-num-mbufs=4096 --txpkts=64 %s", mode, more);
	return pair_run(pair, &c, mode);
}

void testpmd_start(struct place *place, const struct way *way, struct pair *pair)
{
	pair_begin(place, pair, way->dray != 0);
	pair->size = 64;
	if (way->receiver) {
		pair->receiver = start(place, pair, 1, way->receiver, way->dray, "rxonly", "");
		if (!way->waits && process_says(&pair->receiver, 0, PROMPT, START_S) < 0) {
			pair_failed(pair, "the receiving testpmd did not start");
			return;
		}
	}
	pair->sender = start(place, pair, 0, way->sender, way->dray, "txonly", way->application);
	if (process_says(&pair->sender, 0, PROMPT, START_S) < 0)
		pair_failed(pair, "the sending testpmd did not start");
	else if (way->waits && process_says(&pair->receiver, 0, PROMPT, START_S) < 0)
		pair_failed(pair, "the receiving testpmd did not start");
	pair_pause(pair);
}

static int set_size(struct pair *pair, unsigned size)
{
	char line[64];

	if (pair->size == size)
		return 0;
	snprintf(line, sizeof(line), "stop\nset txpkts %u\nstart\n", size);
	if (process_ask(&pair->sender, line, "txonly packet forwarding", NULL) < 0)
		return -1;
	pair->size = size;
	return 0;
}

double testpmd_rate(const struct place *place, struct pair *pair, unsigned size)
{
	struct process *counts = pair->receiver.pid ? &pair->receiver : &pair->sender;
	const char *label = counts == &pair->receiver ? "Rx-pps:" : "Tx-pps:";
	double rate;

	if (pair->why)
		return 0;
	pair_resume(pair);
	if (set_size(pair, size) < 0)
		return pair_failed(pair, "the sending testpmd did not take another size");
	usleep(SETTLE_US);
	/* It prints the rate since it was asked last, by its own clock. */
	if (process_ask(counts, SHOW, label, &rate) < 0)
		return pair_failed(pair, "testpmd has ended, or does not answer");
	usleep((useconds_t)(place->seconds * 1e6));
	if (process_ask(counts, SHOW, label, &rate) < 0)
		return pair_failed(pair, "testpmd has ended, or does not answer");
	pair_pause(pair);
	return rate > 0 ? rate : pair_failed(pair, "no packet arrived");
}
