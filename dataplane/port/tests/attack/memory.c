/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attack the other end of a link through the memory that both share. Most lives follow the victim
 * so that their garbage is looked at; the others write everywhere, blindly.
 */
#include "attack.h"
#include "scribble.h"
#include "test.h"

#define ROUND 64 /* scribbles between looks at the victim and the clock */

/* The victim's words say where it is; it may hold a few buffers more than it has returned. */
static void follow(struct scribbler *s, const struct rawend *e)
{
	s->head = atomic_load(&e->tx.words->returned.value) +
		  (uint32_t)scribble_random(&s->seed) % 48;
	s->returned = atomic_load(&e->rx.words->tail) -
		      (uint32_t)scribble_random(&s->seed) % e->rx.ring_size;
}

static void life(const char *port, struct tally *tally, uint64_t seed, uint64_t until_ns)
{
	struct rawend e = rawend_join(attack_directory(), port);
	struct scribbler s = {.seed = seed, .follows = seed % 4 != 0};

	scribble_at_seals(&e);
	while (clock_ns() < until_ns) {
		uint64_t before = s.writes;

		if (s.follows)
			follow(&s, &e);
		for (unsigned i = 0; i < ROUND; i++)
			scribble(&s, &e);
		atomic_fetch_add(&tally->attempts, s.writes - before);
	}
	rawend_leave(&e);
}

int main(int argc, char **argv)
{
	return attack_main(argc, argv, life);
}
