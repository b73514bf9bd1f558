/* SPDX-License-Identifier: Apache-2.0 */
/* The role "ping": round trips, on a schedule (open loop) or one after the other (closed loop). */
#include <stdlib.h>

#include "clock.h"
#include "sender.h"

struct ping {
	struct run *run;
	struct sender *sender;
	struct tracker *tracker;
	uint64_t busy_ns; /* when the last packet arrived */
	/* of the closed loop */
	bool waiting;
	uint64_t asked_ns, warmup_before;
};

static void interval(struct ping *p, uint64_t now)
{
	struct json j = run_interval_begin(p->run, now);

	sender_write_interval(p->sender, &j);
	run_write_received_interval(p->run, &j, p->tracker);
	(void)run_interval_finish(p->run, &j, now);
}

/* Take received packets. Returns whether there were any. */
static bool receive(struct ping *p, uint64_t *now)
{
	struct io *io = p->run->io;
	struct io_buf bufs[IO_BATCH];
	int got = io->ops->receive(io, bufs, IO_BATCH);

	*now = clock_now();
	if (got < 0)
		p->run->error = got;
	if (got > 0) {
		tracker_take_all(p->tracker, bufs, (unsigned)got, *now);
		io->ops->done(io);
		p->busy_ns = *now;
	}
	return got > 0;
}

static void housekeeping(struct ping *p, uint64_t now)
{
	run_service(p->run, now);
	if (now >= run_interval_due(p->run))
		interval(p, now);
}

static void wait_until(struct ping *p, uint64_t now, uint64_t until)
{
	const struct options *o = p->run->options;
	struct io *io = p->run->io;
	uint64_t end = run_interval_due(p->run);

	if (o->busy || now - p->busy_ns < o->spin_ns)
		clock_relax();
	else
		p->run->error = io->ops->wait(io, IO_RX, until < end ? until : end);
}

/* Whether the newest packet has come back: once packets are measured, by its number. */
static bool answered(const struct ping *p)
{
	if (p->sender->sent)
		return p->tracker->next >= p->sender->sent;
	return p->tracker->counts.warmup > p->warmup_before;
}

/* In the closed loop, whether to wait for a reply, and until when. */
static bool must_wait(struct ping *p, uint64_t now, uint64_t *until)
{
	*until = p->asked_ns + p->run->options->timeout_ns;
	p->waiting = p->waiting && now < *until && !answered(p);
	return p->waiting;
}

static void ask(struct ping *p, uint64_t now)
{
	p->warmup_before = p->tracker->counts.warmup;
	p->run->error = sender_burst(p->sender, &now);
	p->asked_ns = now;
	p->waiting = p->run->options->closed;
}

static void ask_all(struct ping *p)
{
	struct run *run = p->run;

	while (!run_stopped() && !run->error) {
		uint64_t now, due, until = 0;

		if (receive(p, &now))
			continue;
		housekeeping(p, now);
		if (must_wait(p, now, &until)) {
			wait_until(p, now, until);
			continue;
		}
		due = sender_due(p->sender, now);
		if (due == UINT64_MAX)
			return;
		if (now < due) {
			wait_until(p, now, due);
			continue;
		}
		ask(p, now);
	}
}

/* Replies in flight. */
static void linger(struct ping *p)
{
	uint64_t now = clock_now(), end = now + p->run->options->timeout_ns;

	while (!run_stopped() && !p->run->error && now < end &&
	       p->tracker->counts.received < p->sender->sent) {
		if (!receive(p, &now))
			wait_until(p, now, end);
		housekeeping(p, now);
	}
}

static int finish(struct ping *p)
{
	struct run *run = p->run;
	struct json j;
	bool clean;

	linger(p);
	if (!run->error)
		sender_finish(p->sender);
	/* The sender knows how many there were. */
	p->tracker->end_seen = true;
	p->tracker->end_count = p->sender->sent;
	j = run_result_begin(run);
	sender_write(p->sender, &j);
	run_write_received(run, &j, p->tracker);
	clean = run_received_clean(p->tracker) && p->sender->unsent == 0 &&
		p->sender->errors == 0 && !run->error;
	run_write_link(run, &j);
	return run_result_end(run, &j, clean);
}

int role_ping(const struct options *o, struct io *io)
{
	struct run run = run_begin(o, io, NULL);
	struct ping p = {.run = &run, .sender = sender_new(&run), .tracker = run_tracker(o)};
	int status = EXIT_ERROR;

	if (p.sender && p.tracker) {
		p.tracker->replies = true;
		ask_all(&p);
		status = finish(&p);
	} else {
		fputs("draygen: no memory\n", stderr);
	}
	free(p.sender);
	free(p.tracker);
	return status;
}
