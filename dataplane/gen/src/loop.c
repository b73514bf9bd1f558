/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The role "loop": one thread sends on one port and receives on another, one way or both, so that
 * the function under test has the other CPUs.
 */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "sender.h"

#define QUIET_NS (200 * NS_PER_MS) /* after this time without a packet, no more are expected */

/* From one port to the other. */
struct way {
	struct options options;
	struct run tx, rx;
	struct sender *sender;
	struct tracker *tracker;
};

struct loop {
	struct run run; /* its port is the first */
	struct io *ports[2];
	struct way ways[2];
	unsigned n;
	uint64_t busy_ns; /* when the last packet arrived */
	bool sleeps;
};

static const char *const names[] = {"forward", "backward"};

/* Also ends a sender that waits for room. */
static void fail(struct loop *l, int error, const struct io *io)
{
	if (l->run.error)
		return;
	l->run.error = error;
	l->run.failed = io;
	for (unsigned i = 0; i < l->n; i++)
		l->ways[i].tx.error = error;
}

/* Take received packets. Returns whether there were any. */
static bool receive(struct loop *l, struct way *w, uint64_t *now)
{
	struct io *io = w->rx.io;
	struct io_buf bufs[IO_BATCH];
	int got = io->ops->receive(io, bufs, IO_BATCH);

	*now = clock_now();
	if (got < 0)
		fail(l, got, io);
	if (got > 0) {
		tracker_take_all(w->tracker, bufs, (unsigned)got, *now);
		io->ops->done(io);
		l->busy_ns = *now;
	}
	return got > 0;
}

static bool receive_all(struct loop *l, uint64_t *now)
{
	bool got = false;

	for (unsigned i = 0; i < l->n; i++)
		got |= receive(l, &l->ways[i], now);
	return got;
}

static void interval(struct loop *l, uint64_t now)
{
	struct json j = run_interval_begin(&l->run, now);

	for (unsigned i = 0; i < l->n; i++) {
		struct way *w = &l->ways[i];

		json_open(&j, names[i]);
		sender_write_interval(w->sender, &j);
		run_write_received_interval(&w->rx, &j, w->tracker);
		json_close(&j);
	}
	(void)run_interval_finish(&l->run, &j, now);
}

/* The first direction's run serves both ports; any error ends both directions. */
static void housekeeping(struct loop *l, uint64_t now)
{
	run_service(&l->ways[0].tx, now);
	run_service(&l->ways[0].rx, now);
	if (l->ways[0].tx.error)
		fail(l, l->ways[0].tx.error, l->ways[0].tx.io);
	if (l->ways[0].rx.error)
		fail(l, l->ways[0].rx.error, l->ways[0].rx.io);
	if (now >= run_interval_due(&l->run))
		interval(l, now);
}

/* The function under test may block until its own packets are received. */
static void while_full(void *of)
{
	struct loop *l = of;
	uint64_t now;

	if (!receive_all(l, &now))
		clock_relax();
	housekeeping(l, now);
}

/* Send what is due. Returns when the next is: UINT64_MAX when all is done. */
static uint64_t send_due(struct loop *l, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < l->n && !l->run.error; i++) {
		struct way *w = &l->ways[i];
		uint64_t due = sender_due(w->sender, now);

		if (due <= now) {
			int ret = sender_burst(w->sender, &now);

			if (ret < 0)
				fail(l, ret, w->tx.io);
		}
		next = due < next ? due : next;
	}
	return next;
}

/* Only one port can be slept on. */
static void wait_until(struct loop *l, uint64_t now, uint64_t until)
{
	struct io *io = l->ways[0].rx.io;
	uint64_t end = run_interval_due(&l->run);
	int ret;

	if (!l->sleeps || now - l->busy_ns < l->run.options->spin_ns)
		clock_relax();
	else if ((ret = io->ops->wait(io, IO_RX, until < end ? until : end)) < 0)
		fail(l, ret, io);
}

static void send_all(struct loop *l)
{
	while (!run_stopped() && !l->run.error) {
		uint64_t now, next;
		bool got = receive_all(l, &now);

		housekeeping(l, now);
		next = send_due(l, now);
		if (next == UINT64_MAX)
			return;
		if (!got && next > now)
			wait_until(l, now, next);
	}
}

static bool complete(const struct loop *l)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->ways[i].tracker->counts.received < l->ways[i].sender->sent)
			return false;
	return true;
}

/* Packets in flight. */
static void linger(struct loop *l)
{
	uint64_t now = clock_now(), end = now + l->run.options->timeout_ns;

	l->busy_ns = now;
	while (!l->run.error && now < end && now - l->busy_ns < QUIET_NS && !complete(l)) {
		if (!receive_all(l, &now))
			wait_until(l, now, now + NS_PER_MS);
		housekeeping(l, now);
	}
}

static bool write_way(struct way *w, struct json *j)
{
	/* The sender knows how many there were. */
	w->tracker->end_seen = true;
	w->tracker->end_count = w->sender->sent;
	json_open(j, "sender");
	sender_write(w->sender, j);
	run_write_link(&w->tx, j);
	json_close(j);
	json_open(j, "sink");
	run_write_received(&w->rx, j, w->tracker);
	run_write_link(&w->rx, j);
	json_close(j);
	return run_received_clean(w->tracker) && w->sender->unsent == 0 && w->sender->errors == 0;
}

static int finish(struct loop *l)
{
	struct json j = run_result_begin(&l->run);
	bool clean = !l->run.error;

	for (unsigned i = 0; i < l->n; i++) {
		json_open(&j, names[i]);
		clean &= write_way(&l->ways[i], &j);
		json_close(&j);
	}
	return run_result_end(&l->run, &j, clean);
}

static bool begin_way(struct loop *l, struct way *w, struct io *from, struct io *to)
{
	w->tx = (struct run){
		.options = &w->options, .io = from, .meanwhile = while_full, .meanwhile_of = l};
	w->rx = (struct run){.options = &w->options, .io = to};
	w->sender = sender_new(&w->tx);
	w->tracker = run_tracker(&w->options);
	return w->sender && w->tracker;
}

static int run_loop(struct loop *l)
{
	int status = EXIT_ERROR;
	bool ok = true;

	l->sleeps = !l->run.options->busy && l->n == 1;
	for (unsigned i = 0; i < l->n; i++)
		ok &= begin_way(l, &l->ways[i], l->ports[i], l->ports[!i]);
	if (ok) {
		send_all(l);
		linger(l);
		status = finish(l);
	} else {
		fputs("draygen: no memory\n", stderr);
	}
	for (unsigned i = 0; i < l->n; i++) {
		free(l->ways[i].sender);
		free(l->ways[i].tracker);
	}
	return status;
}

/*
 * Sent packets return on the same port: a null port, a ring, or a device with a reflector behind
 * it.
 */
static bool one_port(const struct options *o)
{
	return strcmp(o->port, o->to_port) == 0;
}

/* Whether each port sends, receives, or does both. */
static void set_options(struct loop *l, const struct options *o)
{
	struct options *forward = &l->ways[0].options, *backward = &l->ways[1].options;

	*forward = *backward = *o;
	if (one_port(o))
		return;
	forward->role = o->both ? ROLE_PING : ROLE_SEND;
	backward->role = o->both ? ROLE_PING : ROLE_SINK;
	backward->port = o->to_port;
	backward->stream = o->stream + 1 ? o->stream + 1 : 1;
	backward->to_text = o->back_to_text;
	backward->to = o->back_to;
	memcpy(backward->to_mac, o->back_to_mac, 6);
	backward->encap = o->back_encap;
	if (o->both && (o->back_encap.kind || o->encap.kind))
		backward->headers = encap_headers(&o->back_encap);
	if (strcmp(o->layer_text, "payload") == 0)
		backward->layer_bytes = -(int32_t)backward->headers;
	/* The source is the other direction's destination. */
	backward->from_given = o->to_text != NULL;
	backward->from = o->to;
}

/*
 * Frames go to the other port itself, unless the user names another destination: a switch learns
 * the address, and floods only at first.
 */
static void address_each_other(struct loop *l, const struct options *o)
{
	struct frame_address *a = &l->ports[0]->address, *b = &l->ports[1]->address;

	if (one_port(o) || !l->ports[0]->frames || !l->ports[1]->frames)
		return;
	if (!o->to_mac_given)
		memcpy(a->to_mac, b->from_mac, 6);
	if (!o->back_to_mac_given)
		memcpy(b->to_mac, a->from_mac, 6);
}

static bool open_ports(struct loop *l, const struct options *o, struct io_error *error)
{
	set_options(l, o);
	l->n = o->both ? 2 : 1;
	l->ports[0] = io_open(&l->ways[0].options, error);
	if (!l->ports[0])
		return false;
	l->ports[1] = one_port(o) ? l->ports[0] : io_open(&l->ways[1].options, error);
	if (!l->ports[1] || !run_await(o, l->ports, 2, error))
		return false;
	address_each_other(l, o);
	return true;
}

static void close_ports(struct loop *l)
{
	if (l->ports[1] && l->ports[1] != l->ports[0])
		io_close(l->ports[1]);
	if (l->ports[0])
		io_close(l->ports[0]);
}

int role_loop(const struct options *o)
{
	struct loop *l = calloc(1, sizeof(*l));
	struct io_error error = {"no memory"};
	int status = EXIT_ERROR;

	if (l && open_ports(l, o, &error)) {
		run_catch_signals();
		l->run = run_begin(o, l->ports[0], l->ports[1]);
		status = run_loop(l);
	} else {
		fprintf(stderr, "draygen: %s\n", error.text);
	}
	io_exit_status = status;
	if (l)
		close_ports(l);
	free(l);
	return status;
}
