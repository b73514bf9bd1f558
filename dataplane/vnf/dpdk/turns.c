/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker of the load balancer does between packets: it announces itself, and stores. */
#include <rte_cycles.h>
#include <time.h>

#include "turns.h"

#define TURN_HZ 1000u
#define ANNOUNCE_NS 20000000u /* from one announcement to the next */
#define RETURN_NS 2000000000u /* how long to wait for the one that is returned */
#define QUIET_NS 20000000u    /* without a packet, after it was returned */
#define EMPTY_ROUNDS 64u
#define STORE_NS 3000000000u /* how long to wait for Redis at the end */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* If the port does not take it, the next one will do. */
static void announce(struct worker *w, enum announcement what, uint64_t number)
{
	const struct program *p = w->program;
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->pool);

	if (!m)
		return;
	announce_write((uint8_t *)rte_pktmbuf_append(m, ANNOUNCEMENT), p->function.port[0].mac,
		       what, number);
	if (rte_eth_tx_burst(p->device[0], w->queue, &m, 1) == 0)
		rte_pktmbuf_free(m);
}

/*
 * No packet comes any more: the balancer said so, or there is none that answers. Time alone does
 * not say so, since this thread may not have run meanwhile: its queue must be found empty.
 */
static bool is_drained(struct turns *s, const struct keep *k, uint64_t now)
{
	uint64_t since = k->returned ? s->packet_ns : s->leaving_ns;

	if (now - s->leaving_ns >= 2 * RETURN_NS)
		return true;
	if (now - since < (k->returned ? QUIET_NS : RETURN_NS)) {
		s->looks = false;
		return false;
	}
	if (!s->looks) {
		s->looks = true;
		s->empty = 0;
	}
	return s->empty >= EMPTY_ROUNDS;
}

static bool has_left(struct turns *s, const struct keep *k, uint64_t now)
{
	return is_drained(s, k, now) && (store_has_all(&k->store, &k->track) ||
					 now - s->leaving_ns >= 2 * RETURN_NS + STORE_NS);
}

static void turn(struct turns *s, struct worker *w, struct program *p)
{
	struct keep *k = p->function.keep;
	bool leaving = atomic_load_explicit(&p->leaving, memory_order_relaxed);
	uint64_t now = now_ns();

	if (leaving && !s->leaving_ns)
		s->leaving_ns = now;
	if (s->packets) {
		s->packet_ns = now;
		s->packets = 0;
	}
	keep_turn(k, now, leaving);
	if (now >= s->announce_ns && !k->returned) {
		announce(w, leaving ? ANNOUNCES_LEAVING : ANNOUNCES_HERE, k->leaving);
		s->announce_ns = now + ANNOUNCE_NS;
	}
	if (leaving && has_left(s, k, now))
		atomic_store_explicit(&p->stop, true, memory_order_relaxed);
}

void turns_round(struct turns *s, struct worker *w, struct program *p, unsigned packets)
{
	uint64_t ticks = rte_rdtsc();

	s->packets += packets;
	s->empty = packets ? 0 : s->empty + 1;
	if (ticks - s->ticks < rte_get_tsc_hz() / TURN_HZ)
		return;
	s->ticks = ticks;
	turn(s, w, p);
}
