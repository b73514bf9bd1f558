/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips between two applications of DPDK. */
#include <stdio.h>
#include <unistd.h>

#include "pairs.h"

#define ANSWER_S 5.0
#define MEDIANS 3

static struct process start(const struct place *place, const struct pair *pair, int side, const char *device, int dray, const char *role)
{
	struct command c = {.cpu = -1};

	command_add(&c, "%s", place->trips);
	pair_eal(place, pair, side, device, dray, &c);
	command_add(&c, "-- %s", role);
	return pair_run(pair, &c, side ? "reflect" : "ping");
}

void trips_start(struct place *place, const struct way *way, struct pair *pair)
{
	pair_begin(place, pair, way->dray != 0);
	pair->receiver = start(place, pair, 1, way->receiver, way->dray, "reflect");
	if (!way->waits && process_says(&pair->receiver, 0, "ready", START_S) < 0) {
		pair_failed(pair, "the reflecting application did not start");
		return;
	}
	pair->sender = start(place, pair, 0, way->sender, way->dray, "ping 64");
	if (process_says(&pair->sender, 0, "p50 ", START_S) < 0)
		pair_failed(pair, "no frame came back");
	pair_pause(pair);
}

double trips_p50(const struct place *place, struct pair *pair)
{
	double p50 = 0;
	size_t from;

	(void)place;
	if (pair->why)
		return 0;
	pair_resume(pair);
	/* The first has a pause in it, which moves no median; those after it are of more trips. */
	for (unsigned i = 0; i < MEDIANS; i++) {
		from = process_logged(&pair->sender);
		if (process_find(&pair->sender, from, "p50 ", &p50, ANSWER_S) < 0)
			return pair_failed(pair, "frames do not come back any more");
	}
	pair_pause(pair);
	return p50;
}
