/* SPDX-License-Identifier: Apache-2.0 */
/* Serve the ports of a process whose links are down, while a thread waits on another one. */
#include "siblings.h"

#include <errno.h>
#include <stdlib.h>

#include "service.h"

#define EVERY_NS 10000000u
#define DOWN_MS 50 /* so that a handshake takes little longer */

struct sibling {
	struct dray_port *port;
	struct sibling *next;
};

/* A list apart from the ports: their memory is wiped in a child of fork. */
static struct sibling *first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t served_ns;
static _Atomic int may_sleep_ms = SERVICE_MS; /* by what was found then */

/* No port of the parent is open here, and no other thread has the lock. */
static void forget(void)
{
	pthread_mutex_init(&lock, NULL);
	while (first) {
		struct sibling *next = first->next;

		free(first);
		first = next;
	}
}

static void take(void)
{
	pthread_mutex_lock(&lock);
}

static void release(void)
{
	pthread_mutex_unlock(&lock);
}

static void begin(void)
{
	(void)pthread_atfork(take, release, forget);
}

int siblings_add(struct dray_port *port)
{
	struct sibling *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	pthread_once(&once, begin);
	take();
	*s = (struct sibling){port, first};
	first = s;
	release();
	return 0;
}

void siblings_remove(struct dray_port *port)
{
	take();
	for (struct sibling **link = &first; *link; link = &(*link)->next) {
		struct sibling *s = *link;

		if (s->port != port)
			continue;
		*link = s->next;
		free(s);
		break;
	}
	release();
}

/* relaxed: an old value only delays or repeats a look. */
static bool is_down(const struct dray_port *port)
{
	return !atomic_load_explicit(&port->current, memory_order_relaxed);
}

/* Returns whether one of them is still down. The lock keeps them open. */
static bool serve_all(const struct dray_port *port)
{
	bool down = false;

	for (struct sibling *s = first; s; s = s->next) {
		if (s->port == port || s->port->has_thread || !is_down(s->port))
			continue;
		(void)dray_service(s->port);
		down |= is_down(s->port);
	}
	return down;
}

int siblings_serve(const struct dray_port *port)
{
	uint64_t now = clock_coarse_ns();

	/* relaxed: a thread that sees an old value serves once too often */
	if (now - atomic_load_explicit(&served_ns, memory_order_relaxed) < EVERY_NS ||
	    pthread_mutex_trylock(&lock) != 0)
		return atomic_load_explicit(&may_sleep_ms, memory_order_relaxed);
	atomic_store_explicit(&served_ns, now, memory_order_relaxed);
	atomic_store_explicit(&may_sleep_ms, serve_all(port) ? DOWN_MS : SERVICE_MS,
			      memory_order_relaxed);
	release();
	return atomic_load_explicit(&may_sleep_ms, memory_order_relaxed);
}
