/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handle what is due on the control plane: for the application, dray_wait and the optional
 * thread.
 */
#include "service.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "events.h"
#include "lane.h"
#include "rebind.h"
#include "telemetry.h"

#define RETRY_MS 50 /* while the broker is away */

static void look_for_holding(struct dray_port *port)
{
	struct generation *gen = atomic_load_explicit(&port->current, memory_order_relaxed);

	if (!gen || gen->kind != DRAY_LINK_SHM)
		return;
	for (unsigned q = 0; q < gen->queues; q++)
		if (tx_lane_starved((struct tx_lane *)gen->tx[q]))
			port_event(port, DRAY_EVENT_PEER_HOLDS, gen->number, gen->kind, 0);
}

/* The lock is held. */
static void service_step(struct dray_port *port)
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
	if (!port_valid(port))
		return -EBADF;
	/* Otherwise another thread is doing it. */
	if (pthread_mutex_trylock(&port->lock) == 0) {
		service_step(port);
		pthread_mutex_unlock(&port->lock);
	}
	return port_events(port);
}

/*
 * The descriptors on which the thread sleeps: the order to stop, the broker, and the death of the
 * peer, but no packets.
 */
static unsigned gather(struct dray_port *port, const struct generation *gen, struct pollfd *p)
{
	unsigned n = 2;

	p[0] = (struct pollfd){.fd = port->thread_stop[0], .events = POLLIN};
	p[1] = (struct pollfd){.fd = port->control.fd, .events = POLLIN};
	for (unsigned q = 0; gen && gen->kind == DRAY_LINK_SHM && q < gen->queues; q++)
		p[n++] = (struct pollfd){.fd = gen->bells[q], .events = POLLRDHUP};
	return n;
}

/*
 * The thread has a reference while it sleeps. If another thread closed a bell meanwhile, the kernel
 * would do so here, at the end of poll, and a descriptor in the bell could make that wait.
 */
static void *serve(void *argument)
{
	struct dray_port *port = argument;
	bool stop = false;

	while (!stop) {
		struct pollfd p[2 + DRAY_MAX_QUEUES];
		struct generation *gen;
		unsigned n;
		int ms;

		pthread_mutex_lock(&port->lock);
		service_step(port);
		gen = atomic_load_explicit(&port->current, memory_order_relaxed);
		if (gen)
			generation_get(gen);
		n = gather(port, gen, p);
		ms = port->control.state == CONTROL_READY ? SERVICE_MS : RETRY_MS;
		pthread_mutex_unlock(&port->lock);
		stop = poll(p, n, ms) > 0 && p[0].revents;
		if (gen)
			generation_put(gen);
	}
	return NULL;
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
