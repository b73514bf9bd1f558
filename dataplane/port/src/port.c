/* SPDX-License-Identifier: Apache-2.0 */
/* Open, close, look at a port; which generation is current, and when an old one goes. */
#include "port.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lane.h"
#include "sized.h"
#include "watch.h"

#define DEFAULT_DIRECTORY "/run/dray/ports"
#define DEFAULT_TIMEOUT_MS 2000
#define DEFAULT_SPIN_US 50
#define POOL_PACKETS 1024
#define POOL_MESSAGES 8
#define ETHERNET_ROOM 64 /* beyond the MTU: header and tags, generously */

void port_get(struct dray_port *port)
{
	atomic_fetch_add_explicit(&port->refs, 1, memory_order_relaxed);
}

static void free_queue(struct queue *queue)
{
	free((void *)queue->histogram);
	if (queue->wake >= 0)
		close(queue->wake);
	if (queue->waker.fd >= 0)
		close(queue->waker.fd);
	if (queue->epoll >= 0)
		close(queue->epoll);
}

static void port_free(struct dray_port *port)
{
	for (unsigned q = 0; port->queues && q < port->queue_count; q++)
		free_queue(&port->queues[q]);
	telemetry_unmap(port);
	if (port->epoll >= 0)
		close(port->epoll);
	if (port->event_epoll >= 0)
		close(port->event_epoll);
	pthread_mutex_destroy(&port->lock);
	free(port->queues);
	munmap(port, sizeof(*port));
}

void port_put(struct dray_port *port)
{
	/* acq_rel: pairs with itself; whoever frees sees what all others did. */
	if (atomic_fetch_sub_explicit(&port->refs, 1, memory_order_acq_rel) == 1)
		port_free(port);
}

static void last_put(struct attachment *attachment)
{
	struct dray_port *port = attachment->owner;

	attachment_free(attachment);
	port_put(port);
}

void port_adopt(struct dray_port *port, struct attachment *a)
{
	a->owner = port;
	a->last_put = last_put;
	port_get(port);
	for (unsigned q = 0; q < DRAY_MAX_QUEUES; q++) {
		if (a->tx[q])
			attachment_get(a);
		if (a->rx[q])
			attachment_get(a);
	}
	a->next = port->attachments;
	port->attachments = a;
}

/* Generations whose packets wait for a queue that is not polled: without a bound, a peer that sends one and dies, again and again, fills the memory. */
#define UNTAKEN_MAX 4

/* A home that no side took: nobody else looks after it. What there is to receive waits for its queue, `drop`: no longer. */
static void retire_untaken(const struct attachment *a, struct dray_home *home, bool drop)
{
	/* acquire: pairs with the releases in bell_drain and note_death; the tail that is read next is final. */
	bool final = atomic_load_explicit(&a->peer_gone, memory_order_acquire) || clock_coarse_ns() - a->left_ns > DRAIN_NS;

	if (!home || home->adopted || home->retired)
		return;
	if (!home->ops->recv || drop || (final && !home->ops->ready(home)))
		home_retire(home);
}

void port_reap(struct dray_port *port)
{
	struct attachment **link = &port->attachments;
	struct attachment *current = atomic_load_explicit(&port->current, memory_order_relaxed);
	unsigned left = 0; /* the newest come first */

	while (*link) {
		struct attachment *a = *link;

		left += a != current && a->kind != DRAY_LINK_NONE;
		for (unsigned q = 0; a != current && q < DRAY_MAX_QUEUES; q++) {
			retire_untaken(a, a->tx[q], false);
			retire_untaken(a, a->rx[q], left > UNTAKEN_MAX);
		}
		/* Only the list refers to it, and only those who refer to it can make more references. acquire: pairs with the release in attachment_put. */
		if (a != current && atomic_load_explicit(&a->refs, memory_order_acquire) == 1) {
			*link = a->next;
			attachment_put(a);
		} else {
			link = &a->next;
		}
	}
}

void port_switch(struct dray_port *port, struct attachment *to)
{
	struct attachment *from = atomic_load_explicit(&port->current, memory_order_relaxed);

	if (from == to)
		return;
	if (from) {
		from->left_ns = clock_coarse_ns();
		/* When the link moves, the peer may still ring on the old bells: until they are drained. */
		if (!to || from->kind != DRAY_LINK_SHM)
			unwatch_bells(port, from);
		else
			unwatch_death(port, from);
	}
	if (to)
		watch_bells(port, to);
	atomic_store_explicit(&port->current, to, memory_order_relaxed);
	/* release: pairs with the acquire in side_follow. */
	atomic_fetch_add_explicit(&port->switches, 1, memory_order_release);
	for (unsigned q = 0; q < port->queue_count; q++)
		if (port->queues[q].wake >= 0)
			(void)eventfd_write(port->queues[q].wake, 1);
	if (to)
		port_event(port, from ? DRAY_EVENT_REBIND : DRAY_EVENT_PEER_UP, to->generation, to->kind, 0);
	else
		port_event(port, DRAY_EVENT_PEER_DOWN, from->generation, from->kind, 0);
}

void port_event(struct dray_port *port, enum dray_event_type type, uint32_t generation, uint32_t kind, int error)
{
	uint32_t tail = atomic_load_explicit(&port->event_tail, memory_order_relaxed);

	if (tail - port->event_head == EVENTS)
		port->event_head++;
	port->events[tail % EVENTS] = (struct dray_event){type, generation, kind, error};
	atomic_store_explicit(&port->event_tail, tail + 1, memory_order_relaxed);
}

int port_make_pools(struct dray_port *port, bool needed)
{
	struct pool_shape shape = {
		.packets = POOL_PACKETS,
		.packet_room = port->welcome.mtu + ETHERNET_ROOM,
		.messages = POOL_MESSAGES,
		.message_room = DRAY_MAX_MESSAGE,
	};
	struct attachment *a;
	int ret = 0;

	if (!needed || port->pools)
		return 0;
	a = attachment_new(DRAY_LINK_NONE, 0);
	if (!a)
		return -ENOMEM;
	a->destroy_home = pool_free;
	for (unsigned q = 0; ret == 0 && q < port->queue_count; q++) {
		struct queue *queue = &port->queues[q];

		ret = pool_new(&shape, &pool_ops, a, &queue->pool_counters, 0, &queue->pool);
		if (ret == 0)
			a->rx[q] = &queue->pool->home;
	}
	if (ret) {
		attachment_free(a);
		for (unsigned q = 0; q < port->queue_count; q++)
			port->queues[q].pool = NULL;
		return ret;
	}
	for (unsigned q = 0; q < port->queue_count; q++)
		a->rx[q]->adopted = true;
	port->pools = a;
	port_adopt(port, a);
	return 0;
}

static int take_options(struct dray_port *port, const char *name, const struct dray_options *given, uint32_t *timeout_ms)
{
	struct dray_options o = {0};
	const char *directory;
	int n, ret = given ? sized_read(&o, sizeof(o), given) : 0;

	if (ret)
		return ret;
	if (!name || !wire_name_valid(name) || o.queues > DRAY_MAX_QUEUES || o.mode > DRAY_MODE_SLEEPING ||
	    (o.flags & ~(uint32_t)(DRAY_RX_COPY | DRAY_SERVICE_THREAD)))
		return -EINVAL;
	directory = o.directory ? o.directory : getenv("DRAY_PORTS");
	n = snprintf(port->path, sizeof(port->path), "%s/%s", directory ? directory : DEFAULT_DIRECTORY, name);
	if (n < 0 || (size_t)n >= sizeof(port->path))
		return -ENAMETOOLONG;
	strncpy(port->welcome.port, name, PORT_NAME - 1);
	port->mode = o.mode;
	port->flags = o.flags;
	port->wanted_queues = o.queues;
	port->spin_ticks = (uint64_t)((double)clock_rate_hz(&port->rate) / 1e6 * (o.spin_us ? o.spin_us : DEFAULT_SPIN_US));
	*timeout_ms = o.timeout_ms ? o.timeout_ms : DEFAULT_TIMEOUT_MS;
	return 0;
}

static int make_wakers(struct dray_port *port, struct queue *queue)
{
	queue->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	queue->waker.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (queue->wake < 0 || queue->waker.fd < 0)
		return -errno;
	return watch_waker(port, queue->waker.fd);
}

static int make_queues(struct dray_port *port)
{
	size_t size;

	port->queue_count = port->welcome.queues;
	size = port->queue_count * sizeof(struct queue);
	port->queues = aligned_alloc(LAYOUT_ALONE, size);
	if (!port->queues)
		return -ENOMEM;
	memset(port->queues, 0, size);
	for (unsigned q = 0; q < port->queue_count; q++)
		port->queues[q].wake = port->queues[q].waker.fd = port->queues[q].epoll = -1;
	for (unsigned q = 0; q < port->queue_count; q++) {
		port->queues[q].histogram = calloc(HISTOGRAM_SIZE, sizeof(uint64_t));
		if (!port->queues[q].histogram)
			return -ENOMEM;
		if (port->mode != DRAY_MODE_BUSY) {
			int ret = make_wakers(port, &port->queues[q]);

			if (ret)
				return ret;
		}
	}
	return port_make_pools(port, (port->flags & DRAY_RX_COPY) ||
					     (port->welcome.hold_quota && port->welcome.hold_policy == HOLD_COPY));
}

/* A page of its own, which a child of fork finds wiped: so its calls fail at once. */
static struct dray_port *port_alloc(void)
{
	struct dray_port *port = mmap(NULL, sizeof(*port), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (port == MAP_FAILED)
		return NULL;
	(void)madvise(port, sizeof(*port), MADV_WIPEONFORK);
	atomic_init(&port->refs, 1);
	pthread_mutex_init(&port->lock, NULL);
	port->control.fd = -1;
	port->thread_stop[0] = port->thread_stop[1] = -1;
	port->epoll = epoll_create1(EPOLL_CLOEXEC);
	port->event_epoll = -1;
	clock_rate_begin(&port->rate);
	return port;
}

EXPORT int dray_open(const char *name, const struct dray_options *options, struct dray_port **out)
{
	struct dray_port *port;
	uint32_t timeout_ms = 0;
	int ret;

	if (!out)
		return -EINVAL;
	port = port_alloc();
	if (!port)
		return -ENOMEM;
	ret = port->epoll < 0 ? -errno : take_options(port, name, options, &timeout_ms);
	if (ret == 0)
		ret = control_open(port, timeout_ms);
	if (ret == 0) {
		port->magic = PORT_MAGIC;
		ret = make_queues(port);
	}
	if (ret == 0 && (port->flags & DRAY_SERVICE_THREAD))
		ret = service_start(port);
	if (ret) {
		port->magic = 0;
		control_close(port);
		port_put(port);
		return ret;
	}
	*out = port;
	return 0;
}

void port_capture(struct dray_port *port, struct capture *capture)
{
	if (port->capture == capture)
		return;
	if (capture) {
		capture->next = port->captures;
		port->captures = capture;
	}
	port->capture = capture;
	/* release: pairs with the acquire in side_follow. */
	atomic_fetch_add_explicit(&port->switches, 1, memory_order_release);
}

void port_reap_captures(struct dray_port *port)
{
	struct capture **link = &port->captures;

	while (*link) {
		struct capture *c = *link;

		if (c != port->capture && capture_unused(c)) {
			*link = c->next;
			capture_free(c);
		} else {
			link = &c->next;
		}
	}
}

/* What a retired home still waits for comes back by dray_release; from now on, from any thread. */
static void orphan_all(struct attachment *a)
{
	for (unsigned q = 0; q < DRAY_MAX_QUEUES; q++) {
		for (unsigned i = 0; i < 2; i++) {
			struct dray_home *home = i ? a->rx[q] : a->tx[q];

			if (home && !home->settled)
				home_orphan(home);
		}
	}
}

EXPORT int dray_close(struct dray_port *port)
{
	struct attachment *a, *next;

	if (!port_valid(port))
		return -EBADF;
	service_stop(port);
	pthread_mutex_lock(&port->lock);
	atomic_store_explicit(&port->current, NULL, memory_order_relaxed); /* every reader has the lock */
	telemetry_step(port, true);
	port_capture(port, NULL);
	for (unsigned q = 0; q < port->queue_count; q++) {
		side_leave_tap(&port->queues[q].tx);
		side_leave_tap(&port->queues[q].rx);
	}
	port_reap_captures(port);
	pthread_mutex_unlock(&port->lock);
	control_close(port);
	port->magic = 0;
	for (a = port->attachments; a; a = next) {
		next = a->next;
		orphan_all(a);
		for (unsigned q = 0; q < a->queues; q++)
			shutdown(a->bells[q], SHUT_RDWR); /* the peer learns it now, not when the last buffer is back */
		attachment_put(a);
	}
	port_put(port);
	return 0;
}

static void link_info(struct dray_port *port, struct dray_info *info)
{
	const struct attachment *a = atomic_load_explicit(&port->current, memory_order_relaxed);

	if (a) {
		info->queues_in_use = a->queues;
		info->state = DRAY_LINK_UP;
		info->kind = a->kind;
		info->generation = a->generation;
		info->packet_max = a->packet_max;
		info->message_max = a->message_max;
		info->packet_slots = a->packet_slots;
	}
	info->broker = port->control.state == CONTROL_READY;
	info->tick_hz = clock_rate_hz(&port->rate);
}

EXPORT int dray_info(struct dray_port *port, struct dray_info *out)
{
	struct dray_info info = {0};

	if (!port_valid(port))
		return -EBADF;
	if (!out)
		return -EINVAL;
	pthread_mutex_lock(&port->lock);
	memcpy(info.name, port->welcome.port, sizeof(info.name));
	memcpy(info.mac, port->welcome.mac, sizeof(info.mac));
	memcpy(info.ip4, port->welcome.ip4, sizeof(info.ip4));
	memcpy(info.ip6, port->welcome.ip6, sizeof(info.ip6));
	info.ip4_prefix = port->welcome.ip4_prefix;
	info.ip6_prefix = port->welcome.ip6_prefix;
	info.mtu = port->welcome.mtu;
	info.queues = port->queue_count;
	link_info(port, &info);
	pthread_mutex_unlock(&port->lock);
	return sized_write(out, &info, sizeof(info));
}

static void add_held(struct dray_port *port, unsigned queue, struct dray_stats *stats)
{
	for (const struct attachment *a = port->attachments; a; a = a->next) {
		if (a->tx[queue])
			stats->held += home_held(a->tx[queue]);
		if (a->rx[queue])
			stats->held += home_held(a->rx[queue]);
	}
}

static void add_queue(struct dray_port *port, unsigned q, struct dray_stats *s)
{
	s->tx_packets += port_count(port, q, COUNT_TX_PACKETS);
	s->tx_bytes += port_count(port, q, COUNT_TX_BYTES);
	s->rx_packets += port_count(port, q, COUNT_RX_PACKETS);
	s->rx_bytes += port_count(port, q, COUNT_RX_BYTES);
	s->tx_no_buffer += port_count(port, q, COUNT_TX_NO_BUFFER);
	s->tx_dropped += port_count(port, q, COUNT_TX_DROPPED);
	s->tx_copied += port_count(port, q, COUNT_TX_COPIED);
	s->rx_dropped += port_count(port, q, COUNT_RX_DROPPED);
	s->rx_copied += port_count(port, q, COUNT_RX_COPIED);
	s->misuse += port_count(port, q, COUNT_MISUSE);
	for (unsigned i = 0; i < DRAY_VIOLATIONS; i++)
		s->violations[i] += port_count(port, q, COUNT_VIOLATION + i);
	s->stamps += atomic_load_explicit(&port->queues[q].rx.counters.stamps, memory_order_relaxed);
	add_held(port, q, s);
}

EXPORT int dray_stats(struct dray_port *port, unsigned queue, struct dray_stats *out)
{
	struct dray_stats stats = {0};

	if (!port_valid(port))
		return -EBADF;
	if (!out || (queue != DRAY_ALL_QUEUES && queue >= port->queue_count))
		return -EINVAL;
	pthread_mutex_lock(&port->lock);
	for (unsigned q = 0; q < port->queue_count; q++)
		if (queue == DRAY_ALL_QUEUES || queue == q)
			add_queue(port, q, &stats);
	for (const struct attachment *a = port->attachments; a; a = a->next)
		stats.maps += a->map != NULL;
	pthread_mutex_unlock(&port->lock);
	return sized_write(out, &stats, sizeof(stats));
}

EXPORT int dray_events(struct dray_port *port, struct dray_event *events, unsigned n)
{
	unsigned i = 0;

	if (!port_valid(port))
		return -EBADF;
	pthread_mutex_lock(&port->lock);
	while (i < n && port->event_head != atomic_load_explicit(&port->event_tail, memory_order_relaxed))
		events[i++] = port->events[port->event_head++ % EVENTS];
	pthread_mutex_unlock(&port->lock);
	return (int)i;
}
