/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors that an application can sleep on: of everything, of the control plane, of one
 * queue.
 */
#include "watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "port.h"

static void change(int epoll, int what, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events};

	if (epoll >= 0 && fd >= 0)
		(void)epoll_ctl(epoll, what, fd, &e);
}

int watch_control(struct dray_port *port, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	if (epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
		return -errno;
	change(port->event_epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
	return 0;
}

int watch_waker(struct dray_port *port, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void unwatch_control(struct dray_port *port, int fd)
{
	change(port->epoll, EPOLL_CTL_DEL, fd, 0);
	change(port->event_epoll, EPOLL_CTL_DEL, fd, 0);
}

static void change_bells(struct dray_port *port, const struct generation *gen, int what)
{
	for (unsigned q = 0; q < gen->queues; q++) {
		change(port->epoll, what, gen->bells[q], EPOLLIN);
		change(port->queues[q].epoll, what, gen->bells[q], EPOLLIN);
	}
}

static void change_deaths(struct dray_port *port, const struct generation *gen, int what)
{
	for (unsigned q = 0; gen->kind == DRAY_LINK_SHM && q < gen->queues; q++)
		change(port->event_epoll, what, gen->bells[q], EPOLLRDHUP);
}

void watch_bells(struct dray_port *port, const struct generation *gen)
{
	change_bells(port, gen, EPOLL_CTL_ADD);
	change_deaths(port, gen, EPOLL_CTL_ADD);
}

void unwatch_bells(struct dray_port *port, const struct generation *gen)
{
	change_bells(port, gen, EPOLL_CTL_DEL);
	unwatch_death(port, gen);
}

void unwatch_bell(struct dray_port *port, const struct generation *gen, unsigned queue)
{
	change(port->epoll, EPOLL_CTL_DEL, gen->bells[queue], 0);
	change(port->queues[queue].epoll, EPOLL_CTL_DEL, gen->bells[queue], 0);
}

void unwatch_death(struct dray_port *port, const struct generation *gen)
{
	change_deaths(port, gen, EPOLL_CTL_DEL);
}

EXPORT int dray_fd(struct dray_port *port)
{
	if (!port_valid(port))
		return -EBADF;
	return port->mode == DRAY_MODE_BUSY ? -ENOTSUP : port->epoll;
}

/* Make an epoll descriptor, once. The lock is held. */
static int made(int *epoll)
{
	if (*epoll < 0)
		*epoll = epoll_create1(EPOLL_CLOEXEC);
	return *epoll < 0 ? -errno : *epoll;
}

EXPORT int dray_event_fd(struct dray_port *port)
{
	struct generation *gen;
	bool first;
	int fd;

	if (!port_valid(port))
		return -EBADF;
	pthread_mutex_lock(&port->lock);
	first = port->event_epoll < 0;
	fd = made(&port->event_epoll);
	gen = atomic_load_explicit(&port->current, memory_order_relaxed);
	if (fd >= 0 && first) {
		change(fd, EPOLL_CTL_ADD, port->control.fd, EPOLLIN);
		if (gen)
			change_deaths(port, gen, EPOLL_CTL_ADD);
	}
	pthread_mutex_unlock(&port->lock);
	return fd;
}

EXPORT int dray_queue_fd(struct dray_port *port, unsigned queue)
{
	bool first;
	int fd;

	if (!port_valid(port))
		return -EBADF;
	if (port->mode == DRAY_MODE_BUSY)
		return -ENOTSUP;
	if (queue >= port->queue_count)
		return -EINVAL;
	pthread_mutex_lock(&port->lock);
	first = port->queues[queue].epoll < 0;
	fd = made(&port->queues[queue].epoll);
	if (fd >= 0 && first)
		change(fd, EPOLL_CTL_ADD, port->queues[queue].waker.fd, EPOLLIN);
	/* Generations that were left may still ring, unless their end has been seen. */
	for (struct generation *gen = port->generations; fd >= 0 && first && gen; gen = gen->next)
		if (queue < gen->queues && gen->kind != DRAY_LINK_NONE &&
		    !atomic_load_explicit(&gen->peer_gone, memory_order_relaxed))
			change(fd, EPOLL_CTL_ADD, gen->bells[queue], EPOLLIN);
	pthread_mutex_unlock(&port->lock);
	return fd;
}
