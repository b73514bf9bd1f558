/* SPDX-License-Identifier: Apache-2.0 */
/* The control side of a port that is open: what is due, waiting, and the optional thread. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lane.h"
#include "port.h"
#include "watch.h"

#define MS 1000000ull
#define SLEEP_MS 250	/* between two looks at what is due */
#define RETRY_MS 50	/* while the broker is away */
#define DRAINING_MS 5	/* while an old generation may still have packets */
#define DRAINING_MAX 8 /* of which the bells are listened to */
#define SPIN_SERVICE 1024

/* Its bells stay readable from now on: nobody is to be woken by that again and again. */
static void note_death(struct dray_port *port, struct attachment *a)
{
	/* release: pairs with the acquires in drain_from and retire_untaken. */
	atomic_store_explicit(&a->peer_gone, true, memory_order_release);
	unwatch_bells(port, a);
}

/* A bell that hung up means that the peer is gone. */
void port_look_for_death(struct dray_port *port)
{
	struct attachment *current = atomic_load_explicit(&port->current, memory_order_relaxed);

	for (struct attachment *a = port->attachments; a; a = a->next) {
		struct pollfd p[DRAY_MAX_QUEUES];

		if (a->kind != DRAY_LINK_SHM)
			continue;
		for (unsigned q = 0; q < a->queues; q++)
			p[q] = (struct pollfd){.fd = a->bells[q], .events = POLLRDHUP};
		if (poll(p, a->queues, 0) > 0)
			note_death(port, a);
		if (a == current && atomic_load_explicit(&a->peer_gone, memory_order_relaxed))
			port_switch(port, NULL);
	}
}

static void look_for_holding(struct dray_port *port)
{
	struct attachment *a = atomic_load_explicit(&port->current, memory_order_relaxed);

	if (!a || a->kind != DRAY_LINK_SHM)
		return;
	for (unsigned q = 0; q < a->queues; q++)
		if (tx_lane_starved((struct tx_lane *)a->tx[q]))
			port_event(port, DRAY_EVENT_PEER_HOLDS, a->generation, a->kind, 0);
}

void port_service(struct dray_port *port)
{
	control_step(port);
	port_look_for_death(port);
	look_for_holding(port);
	port_reap(port);
	port_reap_captures(port);
	telemetry_step(port, false);
}

EXPORT int dray_service(struct dray_port *port)
{
	int events;

	if (!port_valid(port))
		return -EBADF;
	if (pthread_mutex_trylock(&port->lock) == 0) {
		port_service(port);
		events = (int)(atomic_load_explicit(&port->event_tail, memory_order_relaxed) - port->event_head);
		pthread_mutex_unlock(&port->lock);
		return events;
	}
	return 0; /* another thread is at it */
}

static bool side_ready(struct side *side)
{
	return side->home && side->home->ops->ready(side->home);
}

/* Ask for a ring, and look once more. */
static bool side_arm(struct side *side)
{
	if (!side->home)
		return false;
	if (!side->home->ops->arm)
		return side_ready(side);
	side->armed = true;
	return side->home->ops->arm(side->home);
}

static void side_disarm(struct side *side)
{
	if (side->home && side->armed && side->home->ops->disarm)
		side->home->ops->disarm(side->home);
	side->armed = false;
}

static unsigned what_holds(struct dray_port *port, unsigned queue, unsigned what, bool (*look)(struct side *))
{
	struct queue *q = &port->queues[queue];
	unsigned holds = 0;

	side_follow(port, queue, &q->rx, false);
	side_follow(port, queue, &q->tx, true);
	for (struct dray_home *h = q->rx.draining; h; h = h->draining)
		if (h->ops->ready(h))
			holds |= DRAY_WAIT_RX;
	if (q->rx.home)
		home_drain(q->rx.home); /* the peer may wait for it, whatever this side waits for */
	if ((what & DRAY_WAIT_RX) && look(&q->rx))
		holds |= DRAY_WAIT_RX;
	if ((what & DRAY_WAIT_TX) && look(&q->tx))
		holds |= DRAY_WAIT_TX;
	if ((what & DRAY_WAIT_EVENT) && dray_service(port) > 0)
		holds |= DRAY_WAIT_EVENT;
	return holds & what;
}

/* Sleep until a bell, the broker, the death of the peer, or for `ms`. */
static int sleep_on(struct dray_port *port, unsigned queue, unsigned what, int ms)
{
	struct queue *q = &port->queues[queue];
	struct attachment *a = q->rx.attachment;
	struct pollfd p[4 + DRAINING_MAX] = {{.fd = -1},
					     {.fd = port->control.fd, .events = POLLIN},
					     {.fd = q->wake, .events = POLLIN},
					     {.fd = q->waker.fd, .events = POLLIN}};
	unsigned n = 4;
	bool netdev = a && a->kind == DRAY_LINK_NETDEV;

	if (a && queue < a->queues) {
		p[0].fd = a->bells[queue];
		p[0].events = !netdev || (what & DRAY_WAIT_RX) ? POLLIN : 0;
		if (netdev && (what & DRAY_WAIT_TX))
			p[0].events |= POLLOUT;
	}
	if (q->rx.draining && ms > DRAINING_MS)
		ms = DRAINING_MS;
	for (struct dray_home *h = q->rx.draining; h && n < 4 + DRAINING_MAX; h = h->draining)
		if (!atomic_load_explicit(&h->attachment->peer_gone, memory_order_relaxed))
			p[n++] = (struct pollfd){.fd = h->attachment->bells[queue], .events = POLLIN};
	if (poll(p, n, ms > SLEEP_MS ? SLEEP_MS : ms) < 0)
		return -errno;
	return 0;
}

/* Spin for as long as the mode says. */
static unsigned spin(struct dray_port *port, unsigned queue, unsigned what, uint64_t end_ns)
{
	uint64_t start = clock_ticks();
	unsigned holds, turns = 0;

	for (;;) {
		holds = what_holds(port, queue, what & ~(unsigned)DRAY_WAIT_EVENT, side_ready);
		if (holds || port->mode == DRAY_MODE_SLEEPING)
			return holds;
		if (port->mode == DRAY_MODE_ADAPTIVE && clock_ticks() - start > port->spin_ticks)
			return 0;
		if (++turns % SPIN_SERVICE == 0) {
			if (dray_service(port) > 0 && (what & DRAY_WAIT_EVENT))
				return DRAY_WAIT_EVENT;
			if (clock_ns() >= end_ns)
				return 0;
		}
		clock_relax();
	}
}

/* What rang is known: whoever sleeps next looks once more. */
static void drain_bells(struct queue *q, unsigned queue)
{
	if (q->rx.home && q->rx.home->ops->arm)
		(void)bell_drain(q->rx.attachment, queue, &q->rx.counters);
	for (struct dray_home *h = q->rx.draining; h; h = h->draining)
		if (h->ops->arm && bell_drain(h->attachment, queue, &q->rx.counters))
			(void)h->ops->arm(h);
}

static int wait_here(struct dray_port *port, unsigned queue, unsigned what, uint64_t end_ns)
{
	struct queue *q = &port->queues[queue];
	unsigned holds;
	int ret = 0;

	for (;;) {
		uint64_t now;

		holds = spin(port, queue, what, end_ns);
		if (holds)
			return (int)holds;
		if (dray_service(port) > 0 && (what & DRAY_WAIT_EVENT))
			return DRAY_WAIT_EVENT;
		now = clock_ns();
		if (now >= end_ns || ret)
			return ret;
		if (port->mode == DRAY_MODE_BUSY)
			continue;
		drain_bells(q, queue);
		waker_sleep(&q->waker);
		holds = what_holds(port, queue, what, side_arm);
		if (holds)
			return (int)holds;
		ret = sleep_on(port, queue, what, end_ns - now > 3600000 * MS ? 3600000 : (int)((end_ns - now + MS - 1) / MS));
		waker_awake(&q->waker);
	}
}

EXPORT int dray_wait(struct dray_port *port, unsigned queue, unsigned what, int timeout_ms)
{
	struct queue *q;
	int ret = 0;

	if (!port_valid(port))
		return -EBADF;
	if (queue >= port->queue_count || what == 0 || (what & ~(unsigned)(DRAY_WAIT_RX | DRAY_WAIT_TX | DRAY_WAIT_EVENT)))
		return -EINVAL;
	q = &port->queues[queue];
	if (!side_enter(q, &q->rx))
		return 0;
	if (side_enter(q, &q->tx)) {
		ret = wait_here(port, queue, what, timeout_ms < 0 ? UINT64_MAX : clock_ns() + (uint64_t)timeout_ms * MS);
		side_disarm(&q->tx);
		side_disarm(&q->rx);
		waker_awake(&q->waker);
		side_leave(&q->tx);
	}
	side_leave(&q->rx);
	return ret;
}

/* What the thread sleeps on: the order to stop, the broker, and the death of the peer, but not what rings. */
static unsigned gather(struct dray_port *port, struct pollfd *p)
{
	struct attachment *a = atomic_load_explicit(&port->current, memory_order_relaxed);
	unsigned n = 2;

	p[0] = (struct pollfd){.fd = port->thread_stop[0], .events = POLLIN};
	p[1] = (struct pollfd){.fd = port->control.fd, .events = POLLIN};
	for (unsigned q = 0; a && a->kind == DRAY_LINK_SHM && q < a->queues; q++)
		p[n++] = (struct pollfd){.fd = a->bells[q], .events = POLLRDHUP};
	return n;
}

static void *serve(void *argument)
{
	struct dray_port *port = argument;

	for (;;) {
		struct pollfd p[2 + DRAY_MAX_QUEUES];
		unsigned n;
		int ms;

		pthread_mutex_lock(&port->lock);
		port_service(port);
		n = gather(port, p);
		ms = port->control.state == CONTROL_READY ? SLEEP_MS : RETRY_MS;
		pthread_mutex_unlock(&port->lock);
		if (poll(p, n, ms) > 0 && p[0].revents)
			return NULL;
	}
}

int service_start(struct dray_port *port)
{
	int ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, port->thread_stop) < 0)
		return -errno;
	ret = pthread_create(&port->thread, NULL, serve, port);
	port->has_thread = ret == 0;
	return -ret;
}

void service_stop(struct dray_port *port)
{
	if (port->has_thread) {
		close(port->thread_stop[1]);
		port->thread_stop[1] = -1;
		pthread_join(port->thread, NULL);
		port->has_thread = false;
	}
	for (unsigned i = 0; i < 2; i++) {
		if (port->thread_stop[i] >= 0)
			close(port->thread_stop[i]);
		port->thread_stop[i] = -1;
	}
}
