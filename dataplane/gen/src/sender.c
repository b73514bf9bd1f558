/* SPDX-License-Identifier: Apache-2.0 */
/* The sending engine. */
#include "sender.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"

#define REFUSALS 100 /* of one batch, before it is given up */
#define ENDS 8
#define END_NS (10 * NS_PER_SECOND)	   /* a receiver without a CPU leaves the port full */
#define STOPPED_END_NS (2 * NS_PER_SECOND) /* the same after a stop signal */

/*
 * Packets that go to the port together: of one burst, or of several bursts of one packet that are
 * due.
 */
struct batch {
	struct io_buf *bufs; /* the sender's */
	unsigned n, done;
	unsigned flow;
	bool several;
	uint64_t each[IO_BATCH]; /* of several bursts, when each was due */
	uint64_t due, deadline;	 /* of the first burst */
	uint64_t now;		 /* the last time that was read */
};

struct sender *sender_new(struct run *run)
{
	struct sender *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->run = run;
	s->schedule = schedule_begin(run->options, clock_now());
	s->warmup_left = run->options->warmup;
	for (unsigned i = 0; i < IO_BATCH; i++)
		s->bufs[i].length = s->schedule.size - run->options->headers;
	return s;
}

static bool paced(const struct sender *s)
{
	return s->schedule.rate != 0;
}

/* The end of the duration, on the schedule if there is one. */
static bool over(const struct sender *s, uint64_t due)
{
	const struct options *o = s->run->options;

	if (o->packets && s->scheduled >= o->packets)
		return true;
	return o->duration_ns && s->measuring && due - s->started_ns >= o->duration_ns;
}

uint64_t sender_due(struct sender *s, uint64_t now)
{
	uint64_t due = paced(s) ? schedule_due(&s->schedule) : now;

	if (!s->measuring && s->warmup_left == 0) {
		s->measuring = true;
		s->started_ns = s->ended_ns = due;
	}
	if (!s->done)
		s->done = over(s, due);
	return s->done ? UINT64_MAX : due;
}

/* At most n packets, in this part of the run. */
static uint64_t within(const struct sender *s, uint64_t n)
{
	uint64_t limit = s->run->options->packets, left = limit ? limit - s->scheduled : UINT64_MAX;

	if (!s->measuring)
		left = s->warmup_left;
	return n < left ? n : left;
}

/* How many packets are due before a time, in this part of the run. */
static uint64_t overdue(const struct sender *s, uint64_t before)
{
	uint64_t duration = s->run->options->duration_ns;

	if (s->measuring && duration && before > s->started_ns + duration)
		before = s->started_ns + duration;
	return within(s, schedule_overdue(&s->schedule, before));
}

static void account(struct sender *s, uint64_t n, bool sent)
{
	if (!s->measuring) {
		s->warmup_left -= n;
		s->warmup_sent += sent ? n : 0;
		return;
	}
	s->scheduled += n;
	*(sent ? &s->sent : &s->unsent) += n;
}

/* The number of the next packet: only sent ones are counted. */
static uint64_t next_sequence(const struct sender *s)
{
	return s->measuring ? s->sent : s->warmup_sent;
}

static uint16_t flags(const struct sender *s)
{
	return (uint16_t)((s->measuring ? 0 : PACKET_WARMUP) |
			  (s->run->options->check ? PACKET_SUMMED : 0));
}

/* Fill the payloads of packets if they are to be checked. */
static void fill(const struct sender *s, struct batch *b)
{
	for (unsigned i = 0; i < b->n && s->run->options->check; i++)
		b->bufs[i].payload_sum =
			packet_fill(b->bufs[i].data, b->bufs[i].length, next_sequence(s) + i);
}

/* Write the headers of packets of several bursts, each with its own time. */
static void stamp_each(const struct sender *s, struct batch *b, struct packet packet)
{
	struct schedule next = s->schedule;

	for (unsigned i = b->done; i < b->n; i++) {
		packet.intended = b->each[i] = schedule_due(&next);
		io_write(s->run->io, b->flow, schedule_number(&next), &packet, b->bufs + i, 1);
		packet.sequence++;
		schedule_pass(&next, 1);
	}
}

/* Write the headers of packets that are not sent yet, with the present time. */
static void stamp(const struct sender *s, struct batch *b)
{
	struct packet first = {
		.type = PACKET_DATA,
		.flags = flags(s),
		.flow = (uint16_t)b->flow,
		.stream = s->run->options->stream,
		.sequence = next_sequence(s),
	};

	first.sent = b->now = clock_now();
	first.intended = paced(s) ? b->due : b->now;
	if (b->several)
		stamp_each(s, b, first);
	else
		io_write(s->run->io, b->flow, schedule_number(&s->schedule), &first,
			 b->bufs + b->done, b->n - b->done);
}

/* The port takes packets again, or they are no longer worth sending. */
static void end_wait(struct sender *s, uint64_t now)
{
	if (s->full_since_ns)
		s->full_ns += now - s->full_since_ns;
	s->full_since_ns = 0;
}

static uint64_t bytes_of(const struct sender *s, const struct io_buf *bufs, unsigned n)
{
	uint64_t bytes = (uint64_t)n * s->run->options->headers;

	if (!schedule_is_mixed(&s->schedule))
		return bytes + (uint64_t)n * bufs->length;
	for (unsigned i = 0; i < n; i++)
		bytes += bufs[i].length;
	return bytes;
}

static void late(struct sender *s, uint64_t by, unsigned n)
{
	histogram_add(&s->lateness, by, n);
	if (s->run->options->interval_ns)
		histogram_add(&s->lateness_interval, by, n);
}

static void sent(struct sender *s, struct batch *b, unsigned n)
{
	end_wait(s, b->now);
	if (s->measuring) {
		s->sent_bytes += bytes_of(s, b->bufs + b->done, n);
		s->ended_ns = b->now;
	}
	if (s->measuring && paced(s) && !b->several)
		late(s, b->now - b->due, n);
	for (unsigned i = b->done; s->measuring && b->several && i < b->done + n; i++)
		late(s, b->now - b->each[i], 1);
	account(s, n, true);
	schedule_pass(&s->schedule, n);
	b->done += n;
}

/*
 * The port is full: wait for it, but no longer than the catch-up bound allows. Returns 0 to try
 * again, -EAGAIN after that time, -errno.
 */
static int wait_for_room(struct sender *s, struct batch *b)
{
	struct run *run = s->run;
	uint64_t now = b->now = clock_now();

	if (s->measuring) {
		s->full++;
		s->full_since_ns = s->full_since_ns ? s->full_since_ns : now;
	}
	run_service(run, now);
	if (run->error)
		return run->error;
	if (run_stopped() || now >= b->deadline) {
		end_wait(s, now);
		return -EAGAIN;
	}
	if (run->meanwhile) {
		run->meanwhile(run->meanwhile_of);
		return run->error;
	}
	if (run->options->busy) {
		clock_relax();
		return 0;
	}
	return run->io->ops->wait(run->io, IO_TX,
				  b->deadline < now + NS_PER_MS ? b->deadline : now + NS_PER_MS);
}

static int send_batch(struct sender *s, struct batch *b)
{
	struct io *io = s->run->io;
	unsigned refusals = 0;

	fill(s, b);
	while (b->done < b->n) {
		int ret;

		stamp(s, b);
		ret = io->ops->send(io, b->flow, b->bufs + b->done, b->n - b->done);
		if (ret > 0) {
			sent(s, b, (unsigned)ret);
			continue;
		}
		if (ret < 0) {
			s->errors++;
			ret = io_is_fatal(ret) || refusals++ > REFUSALS ? ret : 0;
		} else {
			ret = wait_for_room(s, b);
		}
		if (ret < 0) {
			io->ops->discard(io, b->bufs + b->done, b->n - b->done);
			return ret;
		}
	}
	return 0;
}

/* Set the lengths of the batch's packets, unless all have the same. Returns the longest. */
static uint32_t set_lengths(const struct sender *s, struct batch *b)
{
	const uint32_t headers = s->run->options->headers;
	uint32_t longest = 0;

	if (!schedule_is_mixed(&s->schedule))
		return b->bufs->length;
	for (unsigned i = 0; i < b->n; i++) {
		uint32_t length = schedule_size(&s->schedule, s->schedule.packets + i) - headers;

		b->bufs[i].length = length;
		longest = length > longest ? length : longest;
	}
	return longest;
}

/*
 * Get buffers for up to n packets and send them. Returns how many are settled, or -errno; -EAGAIN:
 * it is too late for the rest.
 */
static int send_some(struct sender *s, struct batch *b, uint32_t n)
{
	struct io *io = s->run->io;
	int ret;

	b->done = 0;
	b->n = n < IO_BATCH ? n : IO_BATCH;
	b->n = io->ops->alloc(io, b->flow, b->bufs, b->n, set_lengths(s, b));
	ret = b->n ? send_batch(s, b) : wait_for_room(s, b);
	return ret < 0 && b->done == 0 ? ret : (int)b->done;
}

/* Until when a burst may be sent that is due at that time. */
static uint64_t deadline(const struct sender *s, uint64_t due)
{
	const struct options *o = s->run->options;

	if (paced(s))
		return due + o->catch_up_ns;
	/* even if the port accepts nothing more */
	return s->measuring && o->duration_ns ? s->started_ns + o->duration_ns : UINT64_MAX;
}

/* Packets whose time is over are never sent. */
static void give_up(struct sender *s, uint64_t n)
{
	account(s, n, false);
	schedule_pass(&s->schedule, n);
}

/*
 * Give up at once what is too late: one by one, a sender might never catch up. Returns when the
 * next burst is due.
 */
static uint64_t skip_late(struct sender *s, uint64_t now)
{
	uint64_t bound = s->run->options->catch_up_ns, due;
	uint64_t n = now > bound ? overdue(s, now - bound) : 0;

	if (n > 0)
		give_up(s, n);
	/* what remains of a mix's cycle */
	while ((due = sender_due(s, now)) < now && now - due > bound)
		give_up(s, within(s, schedule_burst(&s->schedule)));
	return due;
}

/*
 * How many packets go with this burst. A late sender could not catch up with single packets:
 * `several` bursts that are due go together.
 */
static uint64_t due_now(const struct sender *s, struct batch *b)
{
	const struct options *o = s->run->options;
	uint64_t all = 0;

	if (paced(s) && s->schedule.burst == 1 && o->flows == 1 && !o->closed)
		all = overdue(s, b->now);
	b->several = all > 1;
	return b->several ? all : within(s, schedule_burst(&s->schedule));
}

/* Send so many packets while there is time. Returns how many are left, or -errno. */
static int64_t send_left(struct sender *s, struct batch *b, uint64_t left)
{
	while (left > 0 && b->now <= b->deadline) {
		int ret = send_some(s, b, left < IO_BATCH ? (uint32_t)left : IO_BATCH);

		if (ret == -EAGAIN)
			break;
		if (ret < 0)
			return ret;
		left -= (uint32_t)ret;
		if (b->several)
			return 0; /* the next ones have deadlines of their own */
	}
	return (int64_t)left;
}

int sender_burst(struct sender *s, uint64_t *now)
{
	struct batch b;
	int64_t left;

	b.bufs = s->bufs;
	b.now = *now;
	if (paced(s)) {
		*now = b.now = clock_now(); /* it may have been the time of the burst before */
		if (skip_late(s, b.now) > b.now)
			return 0;
	}
	b.flow = (unsigned)(s->bursts++ % s->run->options->flows);
	b.due = paced(s) ? schedule_due(&s->schedule) : b.now;
	b.deadline = deadline(s, b.due);
	left = send_left(s, &b, due_now(s, &b));
	if (left < 0)
		return (int)left;
	*now = b.now;
	if (left > 0 && paced(s))
		give_up(s, b.several ? 1 : (uint64_t)left);
	return 0;
}

/* One end packet. Returns whether the port took it. */
static bool say_end(struct sender *s)
{
	const struct options *o = s->run->options;
	struct io *io = s->run->io;
	struct io_buf buf = {.length = PACKET_HEADER};
	struct packet end;

	if (io->ops->alloc(io, 0, &buf, 1, buf.length) != 1)
		return false;
	end = (struct packet){.type = PACKET_END,
			      .flags = o->check ? PACKET_SUMMED : 0,
			      .stream = o->stream,
			      .sequence = s->sent};
	if (o->check)
		buf.payload_sum = packet_fill(buf.data, buf.length, s->sent);
	end.sent = end.intended = clock_now();
	io_write(io, 0, SLOTS_NO_NUMBER, &end, &buf, 1);
	if (io->ops->send(io, 0, &buf, 1) == 1)
		return true;
	io->ops->discard(io, &buf, 1);
	return false;
}

/*
 * Retry only the first until the port takes it: a receiver that has seen it may be gone by the
 * next.
 */
void sender_finish(struct sender *s)
{
	uint64_t began = clock_now();

	while (!say_end(s)) {
		if (clock_now() - began > (run_stopped() ? STOPPED_END_NS : END_NS))
			return;
		run_service(s->run, clock_now());
		io_sleep(clock_now() + NS_PER_MS);
	}
	for (unsigned again = 0; again + 1 < ENDS; again++) {
		uint64_t due = clock_now() + (NS_PER_MS << again);

		while (clock_now() < due)
			io_sleep(due);
		run_service(s->run, due);
		(void)say_end(s);
	}
}

static void write_how(const struct sender *s, struct json *j)
{
	const struct options *o = s->run->options;
	char size[16];

	snprintf(size, sizeof(size), "%u", o->size);
	json_string(j, "to", o->to_text ? o->to_text : "");
	json_u64(j, "stream", o->stream);
	json_u64(j, "flows", o->flows);
	json_u64(j, "dscp", o->dscp);
	json_string(j, "size", o->imix ? "imix" : size);
	json_string(j, "rate", o->rate_text);
	json_string(j, "layer", o->layer_text);
	json_u64(j, "burst", s->schedule.burst);
	json_u64(j, "interval_ns", schedule_interval(&s->schedule));
	json_u64(j, "granularity_ns", o->granularity_ns);
	json_bool(j, "busy", o->busy);
}

void sender_write(struct sender *s, struct json *j)
{
	uint64_t elapsed = s->ended_ns - s->started_ns;
	double seconds = (double)elapsed / (double)NS_PER_SECOND;

	write_how(s, j);
	json_u64(j, "started_ns", s->started_ns);
	json_u64(j, "ended_ns", s->ended_ns);
	json_u64(j, "elapsed_ns", elapsed);
	json_u64(j, "warmup", s->warmup_sent);
	json_u64(j, "scheduled", s->scheduled);
	json_u64(j, "sent", s->sent);
	json_u64(j, "sent_bytes", s->sent_bytes);
	json_u64(j, "unsent", s->unsent);
	json_u64(j, "send_errors", s->errors);
	json_u64(j, "full", s->full);
	json_u64(j, "full_ns", s->full_ns);
	json_double(j, "send_pps", seconds > 0 ? (double)s->sent / seconds : 0);
	json_double(j, "send_bps", seconds > 0 ? 8 * (double)s->sent_bytes / seconds : 0);
	json_histogram(j, "lateness", &s->lateness, true);
}

void sender_write_interval(struct sender *s, struct json *j)
{
	struct run *run = s->run;

	json_u64(j, "sent", s->sent - run->last_sent);
	json_u64(j, "unsent", s->unsent - run->last_unsent);
	json_histogram(j, "lateness", &s->lateness_interval, false);
	histogram_clear(&s->lateness_interval);
	run->last_sent = s->sent;
	run->last_unsent = s->unsent;
}
