/* SPDX-License-Identifier: Apache-2.0 */
/* Learn whether an idle receiver should poll. */
#include "idle.h"

#define WEIGHT 8	   /* the newest period weighs an eighth */
#define RAREST 5	   /* polling is tried in one of 32 periods, at least */
#define MISSED_MAX 3	   /* and after so many in a row in which it might have paid */
#define GOLDEN 0x9e3779b9u /* steps of this size fall into no rhythm with the packets */

void idle_init(struct idle *idle, uint64_t longest, bool learns)
{
	*idle = (struct idle){.longest = longest, .learns = learns};
}

static bool pays(const struct idle *idle)
{
	return idle->cost <= idle->longest;
}

static bool tries(struct idle *idle)
{
	idle->turn += GOLDEN;
	return idle->missed >= MISSED_MAX || idle->turn <= UINT32_MAX >> idle->rarity;
}

void idle_begin(struct idle *idle, uint64_t now)
{
	bool polls = !idle->learns || pays(idle) || tries(idle);

	idle->began = now;
	idle->seen = 0;
	idle->poll = polls ? idle->longest : 0;
}

void idle_end(struct idle *idle, uint64_t now, unsigned n)
{
	const uint64_t length = (idle->seen ? idle->seen : now) - idle->began;
	const bool caught = length <= idle->longest;

	idle->began = 0;
	if (!idle->learns)
		return;
	if (idle->poll == 0) {
		/* n packets in this time: did they come fast? */
		idle->missed = length <= idle->longest * n ? idle->missed + 1 : 0;
	} else if (pays(idle)) {
		idle->missed = 0;
		idle->rarity = 0;
	} else {
		idle->missed = caught ? MISSED_MAX : 0; /* try again */
		if (!caught && idle->rarity < RAREST)
			idle->rarity++;
	}
	idle->cost += (caught ? length : 2 * idle->longest) / WEIGHT - idle->cost / WEIGHT;
}
