/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a worker, and their sessions. */
#include "keep.h"

#include <stdlib.h>

#include "numbers.h"

#define SWEEP 64u /* places of the table in each turn */

struct keep *keep_open(const struct keep_options *o)
{
	struct keep *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	if (store_open(&k->store, &o->redis, o->lag_ns, o->idle_ns) == 0 &&
	    track_open(&k->track, o->sessions, o->idle_ns, o->redis.length > 0) == 0)
		return k;
	free(k);
	return NULL;
}

void keep_close(struct keep *k)
{
	if (!k)
		return;
	store_close(&k->store);
	track_close(&k->track);
	free(k);
}

enum reason keep_packet(struct keep *k, const struct packet *p)
{
	uint64_t number;
	enum announcement what = announce_read(p, &number);

	if (!what) {
		track_packet(&k->track, p);
		return PASS;
	}
	if (what == ANNOUNCES_LEAVING && k->leaving && number == k->leaving)
		k->returned = true;
	return DROP_ANNOUNCEMENT;
}

void keep_turn(struct keep *k, uint64_t now_ns, bool leaving)
{
	k->track.now_ns = now_ns;
	if (leaving && !k->leaving)
		k->leaving = number_random(&k->track.random) | 1;
	store_turn(&k->store, &k->track, leaving);
	track_sweep(&k->track, SWEEP);
}
