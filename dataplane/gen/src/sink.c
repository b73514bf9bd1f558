/* SPDX-License-Identifier: Apache-2.0 */
/* The role "sink": receive, judge, and with --reflect send back. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "run.h"

#define LINGER_NS (200 * NS_PER_MS) /* wait for missing packets after the sender's end */
#define DRAIN_NS NS_PER_SECOND	    /* of CPU time, for what came before a signal */

struct sink {
	struct run *run;
	struct tracker *tracker;
	uint64_t reflected, reflect_dropped;
	uint64_t end_ns;  /* when the sender's end was seen; 0: not yet */
	uint64_t busy_ns; /* when the last packet arrived */
};

static void interval(struct sink *s, uint64_t now)
{
	struct json j = run_interval_begin(s->run, now);

	run_write_received_interval(s->run, &j, s->tracker);
	(void)run_interval_finish(s->run, &j, now);
}

/* Send back runs of good datagrams; bad ones in between get no reply. */
static void reflect(struct sink *s, struct io_buf *bufs, const bool *good, unsigned n)
{
	struct io *io = s->run->io;

	for (unsigned i = 0, end; i < n; i = end + 1) {
		unsigned sent;

		for (end = i; end < n && good[end]; end++)
			;
		if (end == i)
			continue;
		sent = io->ops->reply(io, bufs + i, end - i);
		s->reflected += sent;
		s->reflect_dropped += end - i - sent;
	}
}

static void turn(const struct io_buf *bufs, unsigned n, struct packet first, uint64_t now)
{
	first.type = first.type == PACKET_DATA ? PACKET_REPLY : PACKET_END_REPLY;
	first.turned = now;
	packet_write(&first, bufs, n);
}

static void take_and_reflect(struct sink *s, struct io_buf *bufs, unsigned n, uint64_t now)
{
	bool good[IO_BATCH];
	struct packet first;

	for (unsigned i = 0, run; i < n; i += run) {
		run = tracker_take(s->tracker, bufs + i, n - i, now, &first, &good[i]);
		memset(good + i, good[i], run);
		if (good[i])
			turn(bufs + i, run, first, now);
	}
	reflect(s, bufs, good, n);
}

static void take(struct sink *s, struct io_buf *bufs, unsigned n, uint64_t now)
{
	if (s->run->options->reflect)
		take_and_reflect(s, bufs, n, now);
	else
		tracker_take_all(s->tracker, bufs, n, now);
	if (s->tracker->end_seen && s->end_ns == 0)
		s->end_ns = now;
}

static bool over(const struct sink *s, uint64_t now)
{
	const struct options *o = s->run->options;

	if (run_stopped() || s->run->error)
		return true;
	if (o->packets && s->tracker->counts.received >= o->packets)
		return true;
	if (o->duration_ns && now - s->run->started_ns >= o->duration_ns)
		return true;
	return o->once && s->end_ns &&
	       (tracker_complete(s->tracker) || now - s->end_ns >= LINGER_NS);
}

/* When to wake without a packet. */
static uint64_t next_look(const struct sink *s, uint64_t now)
{
	uint64_t until = run_interval_due(s->run), end;

	if (s->run->options->duration_ns) {
		end = s->run->started_ns + s->run->options->duration_ns;
		until = end < until ? end : until;
	}
	if (s->end_ns) {
		end = s->end_ns + LINGER_NS;
		until = end < until && end > now ? end : until;
	}
	return until;
}

static void idle(struct sink *s, uint64_t now)
{
	const struct options *o = s->run->options;
	struct io *io = s->run->io;

	if (o->busy || now - s->busy_ns < o->spin_ns)
		clock_relax();
	else
		s->run->error = io->ops->wait(io, IO_RX, next_look(s, now));
}

/* Take received packets. Returns whether there were any. */
static bool receive(struct sink *s, uint64_t *now)
{
	struct io *io = s->run->io;
	struct io_buf bufs[IO_BATCH];
	int got = io->ops->receive(io, bufs, IO_BATCH);

	*now = clock_now();
	if (got < 0)
		s->run->error = got;
	if (got > 0) {
		s->busy_ns = *now;
		take(s, bufs, (unsigned)got, *now);
		io->ops->done(io);
	}
	return got > 0;
}

/* A sink without a CPU finds packets and a signal at once. A sender that goes on cannot keep it. */
static void drain(struct sink *s)
{
	uint64_t now, end = run_cpu_ns() + DRAIN_NS;

	while (receive(s, &now) && run_cpu_ns() < end)
		run_service(s->run, now);
}

static void receive_all(struct sink *s)
{
	uint64_t now = clock_now();

	while (!over(s, now)) {
		if (!receive(s, &now) && !s->run->error)
			idle(s, now);
		run_service(s->run, now);
		if (now >= run_interval_due(s->run))
			interval(s, now);
	}
	if (run_stopped() && !s->run->error)
		drain(s);
}

int role_sink(const struct options *o, struct io *io)
{
	struct run run = run_begin(o, io, NULL);
	struct sink s = {.run = &run, .tracker = run_tracker(o)};
	struct json j;
	int status;

	if (!s.tracker) {
		fputs("draygen: no memory\n", stderr);
		return EXIT_ERROR;
	}
	receive_all(&s);
	j = run_result_begin(&run);
	run_write_received(&run, &j, s.tracker);
	json_u64(&j, "reflected", s.reflected);
	json_u64(&j, "reflect_dropped", s.reflect_dropped);
	run_write_link(&run, &j);
	status = run_result_end(
		&run, &j, run_received_clean(s.tracker) && s.reflect_dropped == 0 && !run.error);
	free(s.tracker);
	return status;
}
