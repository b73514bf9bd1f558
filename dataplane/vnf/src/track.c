/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sessions. */
#include "track.h"

#include <stdlib.h>
#include <sys/random.h>

#include "counters.h"
#include "numbers.h"

static void subtract(_Atomic uint64_t *counter, uint64_t n)
{
	count(counter, -n);
}

/* Places are twice the sessions, so that a free one is nearly always near. */
int track_open(struct track *t, uint32_t sessions, uint64_t idle_ns, bool stores)
{
	uint64_t random[2];

	*t = (struct track){
		.limit = sessions, .idle_ns = idle_ns, .stores = stores, .places = TRACK_WAYS};
	while (t->places < 2 * sessions)
		t->places *= 2;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -1;
	t->secret = random[0];
	t->random = random[1];
	t->all = calloc(t->places, sizeof(*t->all));
	t->queue = calloc(t->places, sizeof(*t->queue));
	if (t->all && t->queue)
		return 0;
	track_close(t);
	return -1;
}

void track_close(struct track *t)
{
	free(t->all);
	free(t->queue);
	t->all = NULL;
	t->queue = NULL;
}

/* With a key, so that no sender knows which flows share places. */
static uint32_t place_of(const struct track *t, const struct flow_key *key)
{
	uint64_t h = t->secret, word;

	_Static_assert(sizeof(*key) % sizeof(word) == 0, "it is hashed by words");
	for (unsigned i = 0; i < sizeof(*key); i += sizeof(word)) {
		memcpy(&word, (const uint8_t *)key + i, sizeof(word));
		h = flow_mix(h ^ word) + t->secret;
	}
	return (uint32_t)h & (t->places - 1);
}

static struct tracked *begin(struct track *t, struct tracked *s, const struct flow_key *key)
{
	if (!s || atomic_load_explicit(&t->counts.live, memory_order_relaxed) >= t->limit) {
		count(&t->counts.untracked, 1);
		return NULL;
	}
	/* 0 stands for none */
	*s = (struct tracked){.used = true, .key = *key, .id = number_random(&t->random) | 1};
	count(&t->counts.live, 1);
	return s;
}

static struct tracked *find(struct track *t, const struct flow_key *key)
{
	uint32_t first = place_of(t, key);
	struct tracked *room = NULL;

	for (uint32_t i = 0; i < TRACK_WAYS; i++) {
		struct tracked *s = &t->all[(first + i) & (t->places - 1)];

		if (s->used && memcmp(&s->key, key, sizeof(*key)) == 0)
			return s;
		if (!s->used && !room)
			room = s;
	}
	return begin(t, room, key);
}

static void enqueue(struct track *t, struct tracked *s)
{
	if (s->waits || !t->stores)
		return;
	s->waits = true;
	s->since_ns = t->now_ns;
	t->queue[t->tail++ & (t->places - 1)] = (uint32_t)(s - t->all);
	count(&t->counts.waiting, 1);
}

void track_packet(struct track *t, const struct packet *p)
{
	struct flow_key key;
	struct tracked *s;

	if (!flow_key(p, &key))
		return;
	s = find(t, &key);
	if (!s)
		return;
	count(&t->counts.packets, 1);
	s->packets++;
	s->bytes += p->length;
	s->last_ns = t->now_ns;
	enqueue(t, s);
}

/* A session in the queue, or on its way to the store, is not yet stored whole. */
static bool is_idle(const struct track *t, const struct tracked *s)
{
	return s->used && t->now_ns - s->last_ns > t->idle_ns && !s->waits &&
	       (!t->stores || s->packets == s->stored_packets);
}

void track_sweep(struct track *t, uint32_t places)
{
	for (; places; places--) {
		struct tracked *s = &t->all[t->swept++ & (t->places - 1)];

		if (!is_idle(t, s))
			continue;
		s->used = false;
		subtract(&t->counts.live, 1);
		count(&t->counts.expired, 1);
	}
}

struct tracked *track_oldest(const struct track *t)
{
	return t->head == t->tail ? NULL : &t->all[t->queue[t->head & (t->places - 1)]];
}

struct tracked *track_take(struct track *t)
{
	struct tracked *s = track_oldest(t);

	if (!s)
		return NULL;
	t->head++;
	s->waits = false;
	return s;
}

void track_stored(struct track *t, struct tracked *s, uint64_t packets, uint64_t bytes)
{
	s->stored_packets += packets;
	s->stored_bytes += bytes;
	subtract(&t->counts.waiting, 1);
}
