/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end's half of the control protocol: PROTOCOL.md, section 2. Nothing here blocks, but
 * dray_open up to its time-out.
 */
#include "control.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "egress/egress.h"
#include "events.h"
#include "lane.h"
#include "netdev.h"
#include "queues.h"
#include "rebind.h"
#include "rights.h"
#include "shm.h"
#include "telemetry.h"
#include "watch.h"

#define MS 1000000ull
#define GREETING_MS 2000
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 2000
#define MESSAGES_PER_STEP 64
#define MAPS_MAX 8 /* generations of which the application may still hold buffers */

/*
 * Hang up. An offer that was not read has bells that the peer may have filled; nothing comes after
 * the shutdown, so reading it all ends. If the broker closed without reading everything, the first
 * read fails.
 */
static void hang_up(struct dray_port *port)
{
	struct control *c = &port->control;
	struct wire_message m;
	int fds[WIRE_MAX_FDS];
	unsigned count, ends = 0;

	(void)shutdown(c->fd, SHUT_RDWR);
	while (ends < 2) {
		int ret = wire_receive(c->fd, &m, fds, &count, FROM_BROKER);

		ends += ret == -EPIPE || ret == -EAGAIN;
		if (ret == 0)
			discard_all(port->discarder, fds, count);
	}
	close(c->fd);
	c->fd = -1;
}

static void drop_offer(struct control *c)
{
	if (c->offered)
		generation_free(c->offered);
	c->offered = NULL;
}

/*
 * Nanoseconds until the next try, after so many without a broker: a quarter of that time, within
 * bounds.
 */
static uint64_t backoff(uint64_t away)
{
	if (away < 4 * BACKOFF_FIRST_MS * MS)
		return BACKOFF_FIRST_MS * MS;
	return away < 4 * BACKOFF_MAX_MS * MS ? away / 4 : BACKOFF_MAX_MS * MS;
}

/* The connection is over. A live link is not. */
static void lose(struct dray_port *port, int error)
{
	struct control *c = &port->control;
	bool was_ready = c->state == CONTROL_READY;

	if (c->fd >= 0) {
		unwatch_control(port, c->fd);
		hang_up(port);
	}
	c->error = error;
	c->state = CONTROL_LOST;
	c->newest = 0;
	drop_offer(c);
	port_capture(port, NULL); /* the broker that asked for it cannot stop it any more */
	if (was_ready)
		c->lost_ns = clock_ns();
	c->deadline_ns = clock_ns() + backoff(clock_ns() - c->lost_ns);
	if (was_ready)
		port_event(port, DRAY_EVENT_BROKER_LOST, 0, 0, 0);
}

static int say(struct dray_port *port, const struct wire_message *m, const int *fds, unsigned count)
{
	int ret = wire_send(port->control.fd, m, fds, count);

	if (ret)
		lose(port, ret);
	return ret;
}

/* Send the error, and hang up. */
static void refuse(struct dray_port *port, int error, uint32_t about, const char *text)
{
	struct wire_message m;

	wire_error(&m, FROM_END, -error, about, text);
	(void)wire_send(port->control.fd, &m, NULL, 0);
	lose(port, error);
}

static int greet(struct dray_port *port)
{
	struct generation *gen = atomic_load_explicit(&port->current, memory_order_relaxed);
	bool readopt = gen && gen->kind == DRAY_LINK_SHM;
	struct wire_message m;

	wire_begin(&m, FROM_END, WIRE_HELLO, readopt ? gen->number : 0);
	m.hello.features = FEATURES_KNOWN;
	memcpy(m.hello.port, port->welcome.port, PORT_NAME);
	m.hello.queues = port->wanted_queues;
	m.hello.mode = port->mode;
	m.hello.clock = CLOCK_KIND_HERE;
	m.hello.flags = readopt ? HELLO_READOPT : 0;
	m.hello.tick_hz = clock_rate_hz(&port->rate);
	return wire_send(port->control.fd, &m, readopt ? &gen->memfd : NULL, readopt ? 1 : 0);
}

/*
 * A broker that refuses at once may already have closed the connection; its reason is still to be
 * read.
 */
static bool hung_up(int error)
{
	return error == -EPIPE || error == -ECONNRESET || error == -ECONNREFUSED;
}

static int dial(struct dray_port *port)
{
	struct control *c = &port->control;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int ret = 0;

	memcpy(address.sun_path, port->path, sizeof(address.sun_path));
	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	if (connect(c->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		ret = -errno;
	if (ret == 0) {
		ret = greet(port);
		if (hung_up(ret))
			ret = 0; /* control_step reads why */
	}
	if (ret == 0)
		ret = watch_control(port, c->fd);
	if (ret) {
		hang_up(port);
		return ret;
	}
	c->state = CONTROL_GREETED;
	c->deadline_ns = clock_ns() + GREETING_MS * MS;
	return 0;
}

/* Whether the fields that never change while a port is open are the same. */
static bool same_port(const struct wire_welcome *a, const struct wire_welcome *b)
{
	return memcmp(a->port, b->port, sizeof(a->port)) == 0 &&
	       memcmp(a->mac, b->mac, sizeof(a->mac)) == 0 &&
	       memcmp(a->ip4, b->ip4, sizeof(a->ip4)) == 0 &&
	       memcmp(a->ip6, b->ip6, sizeof(a->ip6)) == 0 && a->ip4_prefix == b->ip4_prefix &&
	       a->ip6_prefix == b->ip6_prefix && a->mtu == b->mtu && a->queues == b->queues;
}

/* Whether a broker that orders classes, or none, is one that did when the port was opened. */
static bool orders_as_before(const struct dray_port *port, const struct wire_welcome *w)
{
	return !(w->flags & WELCOME_CLASSES) == (port->classes.classes == 0);
}

/* The end is welcomed: the port can be used. */
static void be_ready(struct dray_port *port)
{
	port->control.state = CONTROL_READY;
	if (port->magic == PORT_MAGIC)
		port_event(port, DRAY_EVENT_BROKER_BACK, 0, 0, 0);
}

static void on_welcome(struct dray_port *port, const struct wire_message *m, const int *fds)
{
	struct control *c = &port->control;
	const struct wire_welcome *w = &m->welcome;
	bool again = port->magic == PORT_MAGIC;
	int ret = 0;

	if (memcmp(w->port, port->welcome.port, PORT_NAME) != 0 ||
	    (again && (!same_port(w, &port->welcome) || !orders_as_before(port, w))))
		ret = -EPROTO;
	if (ret == 0)
		ret = telemetry_map(port, fds[0], w->telemetry_size);
	close(fds[0]);
	if (ret) {
		refuse(port, ret, WIRE_WELCOME, "welcome is not acceptable");
		return;
	}
	port->welcome = *w;
	port->last_sample_shift = w->sample_shift;
	if (w->flags & WELCOME_CLASSES)
		c->state = CONTROL_WELCOMED;
	else
		be_ready(port);
}

/* Queue by other classes from now on. Error: -errno, the port keeps those that it has. */
static int change_classes(struct dray_port *port, const struct wire_classes *to)
{
	struct wire_classes before = port->classes;
	int ret = 0;

	port->classes = *to;
	if (port->egress && memcmp(&before, to, sizeof(before)) != 0)
		ret = egress_change(port);
	if (ret)
		port->classes = before;
	return ret;
}

/* A port without classes never gets any: the calls of its threads take no lock. */
static void on_classes(struct dray_port *port, const struct wire_message *m)
{
	bool ready = port->control.state == CONTROL_READY;
	struct wire_message reply;

	if (port->welcome.queues != 1 || (ready && port->classes.classes == 0)) {
		refuse(port, -EPROTO, WIRE_CLASSES, "these classes are not acceptable");
		return;
	}
	wire_begin(&reply, FROM_END, WIRE_CLASSES, 0);
	reply.classed.error = (uint32_t)-change_classes(port, &m->classes);
	if (say(port, &reply, NULL, 0) == 0 && !ready)
		be_ready(port);
}

static unsigned maps(const struct dray_port *port)
{
	unsigned n = 0;

	for (const struct generation *gen = port->generations; gen; gen = gen->next)
		n += gen->kind != DRAY_LINK_NONE;
	return n;
}

static void go_live(struct dray_port *port, struct generation *gen)
{
	struct wire_message m;

	port_adopt(port, gen);
	port_switch(port, gen);
	wire_begin(&m, FROM_END, WIRE_ACTIVE, gen->number);
	(void)say(port, &m, NULL, 0);
}

static void offer_failed(struct dray_port *port, uint32_t generation, uint32_t kind, int error,
			 const char *text)
{
	port_event(port, DRAY_EVENT_ERROR, generation, kind, error);
	refuse(port, error, WIRE_OFFER, text);
}

static void on_shm(struct dray_port *port, const struct wire_message *m, int *fds, unsigned count)
{
	struct control *c = &port->control;
	struct wire_message reply;
	int ret =
		shm_map(&m->offer, m->header.generation, fds, count, port->discarder, &c->offered);

	if (ret) {
		c->offered = NULL;
		offer_failed(port, m->header.generation, DRAY_LINK_SHM, ret,
			     "offered memory is not acceptable");
		return;
	}
	c->offer = m->offer;
	wire_begin(&reply, FROM_END, WIRE_MAPPED, m->header.generation);
	reply.mapped.inode = c->offered->inode;
	(void)say(port, &reply, NULL, 0);
}

static void on_netdev(struct dray_port *port, const struct wire_message *m, int *fds,
		      unsigned count)
{
	struct generation *gen = NULL;
	int ret = netdev_attach(port, &m->offer, m->header.generation, fds, count, &gen);

	if (ret)
		offer_failed(port, m->header.generation, DRAY_LINK_NETDEV, ret,
			     "offered sockets are not acceptable");
	else
		go_live(port, gen);
}

static void close_all(int *fds, unsigned count)
{
	while (count)
		close(fds[--count]);
}

static void on_offer(struct dray_port *port, const struct wire_message *m, int *fds, unsigned count)
{
	struct control *c = &port->control;
	struct generation *gen = atomic_load_explicit(&port->current, memory_order_relaxed);
	uint32_t generation = m->header.generation;
	const char *wrong = NULL;
	int error = -EPROTO;

	if (generation <= c->newest || (gen && generation <= gen->number))
		wrong = "generation does not rise";
	else if (m->offer.queues > port->welcome.queues ||
		 (port->wanted_queues && m->offer.queues > port->wanted_queues))
		wrong = "more queues than there are";
	else if (m->offer.clock != CLOCK_KIND_HERE && (m->offer.features & FEATURE_STAMPS))
		wrong = "not this host's clock";
	if (!wrong && maps(port) >= MAPS_MAX) {
		wrong = "too many generations with buffers out";
		error = -EBUSY;
	} else if (!wrong && discarder_full(port->discarder)) {
		wrong = "too many bells that a peer keeps from being closed";
		error = -EBUSY;
	}
	if (wrong) {
		discard_all(port->discarder, fds, count);
		offer_failed(port, generation, m->offer.kind, error, wrong);
		return;
	}
	c->newest = generation;
	drop_offer(c);
	if (m->offer.kind == DRAY_LINK_SHM)
		on_shm(port, m, fds, count);
	else
		on_netdev(port, m, fds, count);
}

static int make_lanes(struct dray_port *port, struct generation *gen)
{
	const struct wire_offer *offer = &port->control.offer;
	int ret = queues_make_pools(port, port->welcome.hold_quota &&
						  port->welcome.hold_policy == HOLD_COPY);

	for (unsigned q = 0; ret == 0 && q < gen->queues; q++) {
		struct queue *queue = &port->queues[q];
		struct lane_options tx = {
			.peer_sleeps = offer->peer_mode != DRAY_MODE_BUSY,
			.bell = gen->bells[q],
			.sample_shift = port->welcome.sample_shift,
			.hold_quota = port->welcome.hold_quota,
			.hold_copy = port->welcome.hold_policy == HOLD_COPY,
			.rx_copy = port->flags & DRAY_RX_COPY,
			.pool = queue->pool,
			.histogram = queue->histogram,
			.generation = gen,
			.counters = &queue->tx.counters,
		};
		struct lane_options rx = tx;

		rx.counters = &queue->rx.counters;
		ret = shm_make_lanes(gen, offer, q, &tx, &rx);
	}
	return ret;
}

static void on_sealed(struct dray_port *port, const struct wire_message *m)
{
	struct control *c = &port->control;
	struct generation *gen = c->offered;
	int ret;

	if (!gen || gen->number != m->header.generation) {
		refuse(port, -EPROTO, WIRE_SEALED, "nothing was mapped");
		return;
	}
	ret = shm_check_sealed(gen->memfd, c->offer.geometry.size);
	if (ret == 0)
		ret = shm_populate(gen, &c->offer.geometry);
	if (ret == 0)
		ret = make_lanes(port, gen);
	if (ret) {
		offer_failed(port, gen->number, DRAY_LINK_SHM, ret,
			     ret == -ENODATA ? "the memory has holes: pages are missing"
					     : "memory could not be taken into use");
		return;
	}
	c->offered = NULL;
	go_live(port, gen);
}

static void on_rebind(struct dray_port *port, const struct wire_message *m)
{
	struct generation *gen = atomic_load_explicit(&port->current, memory_order_relaxed);

	if (port->control.offered && port->control.offered->number == m->header.generation)
		drop_offer(&port->control);
	/* A link that only moves is left when the next generation is live. */
	if (gen && gen->number == m->header.generation && m->rebind.next == DRAY_LINK_NONE)
		port_switch(port, NULL);
}

static void on_stats(struct dray_port *port)
{
	struct wire_message m;

	wire_begin(&m, FROM_END, WIRE_STATS, 0);
	m.stats.queues = port->queue_count;
	for (unsigned q = 0; q < port->queue_count; q++)
		for (unsigned i = 0; i < COUNTERS; i++)
			m.stats.counters[i] += port_count(port, q, i);
	(void)say(port, &m, NULL, 0);
}

/* If a capture fails, the broker gets an answer, and the link goes on. */
static void on_capture(struct dray_port *port, const struct wire_message *m, int *fds,
		       unsigned count)
{
	struct wire_message reply;
	struct capture *capture = NULL;
	int ret = 0;

	if (!(port->welcome.features & FEATURE_CAPTURE)) {
		close_all(fds, count);
		refuse(port, -EPROTO, WIRE_CAPTURE, "capture was not agreed on");
		return;
	}
	if (count) {
		ret = m->capture.queues == port->queue_count
			      ? capture_map(&m->capture, fds[0], &capture)
			      : -EINVAL;
		close_all(fds, count);
	}
	port_capture(port, capture);
	if (count) {
		wire_begin(&reply, FROM_END, WIRE_CAPTURE, 0);
		reply.captured.error = (uint32_t)-ret;
		(void)say(port, &reply, NULL, 0);
	}
}

static void on_message(struct dray_port *port, const struct wire_message *m, int *fds,
		       unsigned count)
{
	bool greeted = port->control.state == CONTROL_GREETED;
	bool welcomed = port->control.state == CONTROL_WELCOMED;

	if (m->header.type == WIRE_ERROR)
		lose(port, m->error.code ? -(int)m->error.code : -EPROTO);
	else if (m->header.type == WIRE_BYE)
		lose(port, -ECONNRESET);
	else if (greeted && m->header.type == WIRE_WELCOME)
		on_welcome(port, m, fds);
	else if (!greeted && m->header.type == WIRE_CLASSES)
		on_classes(port, m);
	else if (greeted || welcomed || m->header.type == WIRE_WELCOME) {
		close_all(fds, count);
		refuse(port, -EPROTO, m->header.type, "not now");
	} else if (m->header.type == WIRE_OFFER)
		on_offer(port, m, fds, count);
	else if (m->header.type == WIRE_SEALED)
		on_sealed(port, m);
	else if (m->header.type == WIRE_REBIND)
		on_rebind(port, m);
	else if (m->header.type == WIRE_CAPTURE)
		on_capture(port, m, fds, count);
	else
		on_stats(port);
}

/* The broker's answer to HELLO is not complete. */
static bool is_greeting(const struct control *c)
{
	return c->state == CONTROL_GREETED || c->state == CONTROL_WELCOMED;
}

void control_step(struct dray_port *port)
{
	struct control *c = &port->control;
	struct wire_message m;
	int fds[WIRE_MAX_FDS];
	unsigned count;

	if (c->state == CONTROL_LOST) {
		if (clock_ns() < c->deadline_ns)
			return;
		/*
		 * a link whose peer is gone is not presented: the broker would wait for that peer
		 */
		port_look_for_death(port);
		c->error = dial(port);
		if (c->error) {
			lose(port, c->error);
			return;
		}
	}
	for (unsigned i = 0; i < MESSAGES_PER_STEP && c->state != CONTROL_LOST; i++) {
		/* While dray_open runs there are no queues yet: messages after WELCOME wait. */
		if (c->state == CONTROL_READY && !port->queues)
			return;
		int ret = wire_receive(c->fd, &m, fds, &count, FROM_BROKER);

		/*
		 * If the broker closed without reading everything, the first read fails; its last
		 * messages follow.
		 */
		if (ret == -EPIPE)
			ret = wire_receive(c->fd, &m, fds, &count, FROM_BROKER);
		if (ret == -EAGAIN)
			break;
		if (ret == -EPIPE)
			lose(port, -ECONNRESET);
		else if (ret < 0)
			refuse(port, ret, 0, "message is not understood");
		else if (ret == 0)
			on_message(port, &m, fds, count);
	}
	if (is_greeting(c) && clock_ns() >= c->deadline_ns)
		lose(port, -ETIMEDOUT);
}

int control_open(struct dray_port *port, uint32_t timeout_ms)
{
	struct control *c = &port->control;
	uint64_t end = clock_ns() + timeout_ms * MS;
	int ret;

	/* Only a full backlog is worth another try. */
	while ((ret = dial(port)) == -EAGAIN && clock_ns() < end)
		poll(NULL, 0, 5);
	if (ret)
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	c->deadline_ns = end;
	while (is_greeting(c)) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		uint64_t now = clock_ns();

		if (now < end)
			(void)poll(&p, 1, (int)((end - now) / MS) + 1);
		control_step(port);
	}
	return c->state == CONTROL_READY ? 0 : c->error;
}

void control_close(struct dray_port *port)
{
	struct wire_message m;

	drop_offer(&port->control);
	if (port->control.fd < 0)
		return;
	wire_begin(&m, FROM_END, WIRE_BYE, 0);
	m.bye.reason = BYE_CLOSING;
	(void)wire_send(port->control.fd, &m, NULL, 0);
	hang_up(port);
}
